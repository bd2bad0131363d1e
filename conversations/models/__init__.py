"""Models: the tables of conversations, their ledgers and everything around them."""

from conversations.models.account import Account, ApiKey, Quota, Scope
from conversations.models.changecount import ChangeCount
from conversations.models.clients import ClientMark
from conversations.models.conversation import Conversation, ConversationKind
from conversations.models.draft import Draft
from conversations.models.erasure import Erasure, Redaction
from conversations.models.file import File
from conversations.models.grant import Grant
from conversations.models.killswitch import KillSwitch
from conversations.models.notice import Notice, NoticeChoice, NoticeKind
from conversations.models.output import Approval, GateState, Output, ToolUse
from conversations.models.passthrough import PassthroughUsage
from conversations.models.pending import PendingFile
from conversations.models.prompt import Origin, Prompt, State
from conversations.models.secret import RunSecret
from conversations.models.snapshot import Snapshot
from conversations.models.step import Step
from conversations.models.trigger import Firing, FiringState, HookSecret, Overlap, Payload, Proof, Trigger
from conversations.models.usage import Usage
from conversations.models.verification import Verification
from conversations.models.webhook import Delivery, DeliveryState, Event, Webhook
from conversations.models.worker import Drain, Worker
