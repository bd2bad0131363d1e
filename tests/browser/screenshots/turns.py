"""What the model of the company's site says, by what its people say."""

from __future__ import annotations

from typing import Any

from tests.browser.screenshots.app.policies import MISSING


def run(command: str) -> dict[str, Any]:
    """A call that must be approved."""
    return {"name": "shell_run", "arguments": {"command": command}}


def read(path: str) -> dict[str, Any]:
    return {"name": "files_read", "arguments": {"path": path}}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


LOOK = {"name": "files_list", "arguments": {"path": "."}}

INVOICES = (
    "Which invoices of the third quarter did we pay twice? If the export is to blame, test it with a longer wait."
)
EXPORT = "Prepare the export of September: run it against the test bank, check the sum, then pack it for the auditor."
BACKUP = "Why is the nightly backup slow?"
NOTES = "Draft the release notes for 4.2 from the change log."
PHOTOS = "Rename the product photos of spring after their article numbers. Remove what is left over."
CUSTOMERS = "Import the customers of the old shop."
LICENCES = "Which licences do we ship?"
PRICES = "Compare the prices of the three carriers for parcels up to 5 kg."
SHELVES = "How did the two shops sell this year? Show me, and write it up for the meeting."
RETRY = "The export must never send a file twice. Change it."
ZONE = "Move the DNS zone to the new host."
STAGING = "Staging is broken since the migration. Put back the dump of Tuesday."

SHELF_PLAN = "Plan the shelves of the new shop, one aisle after another."
REFUND = "Pay order 88-1402 back."
PAYROLL = "Pay the wages of October."

TWICE = """\
Three invoices were paid twice, **4,310.20 EUR** in all:

| Invoice | Supplier | Paid on | Amount |
|---|---|---|---:|
| 2025-0801 | Ardea Logistics | 14 and 15 August | 2,480.00 |
| 2025-0847 | Kerr Printing | 2 and 3 September | 1,290.20 |
| 2025-0852 | Kerr Printing | 2 and 3 September | 540.00 |

All three have one cause: after a timeout `export.py` sends the file **again**, and nothing checks whether the first \
one arrived. I would like to test it with a longer wait."""

SLOW = """\
The backup itself takes eleven minutes. The other 38 wait for a lock: `restic prune` runs at the same hour and holds it.

## What I would change

1. Move the prune from 02:00 to 05:00, after the backup.
2. Let the backup wait for the lock instead of trying again each minute.

```sh
# /etc/cron.d/backup
0 2 * * *  backup  restic backup /srv/shop --retry-lock 2h
0 5 * * 0  backup  restic forget --prune --keep-daily 14
```

- Nothing is lost: every night of the last month has a complete snapshot.
- The prune is needed **once a week**, not each night.

> The lock was held for 38 minutes on each of the last six nights."""

STREAM = """\
Here is a draft, from 41 entries of the change log. I left out what nobody outside notices.

### Agentsite for Harbour Books 4.2

**New.** Parcels can be split over two shelves. The packing list says which shelf comes first, and the label is \
printed once.

**Better.** The search finds books by the name of their translator. Returns are booked on the day they arrive, not on \
the day they are opened.

**Mended.** Gift cards bought in one currency can be used in another again. """
MORE = "The list of open orders no longer forgets what was sorted. Addresses in Iceland keep their letters. "
SEND = """\
def send(file):
    bank.put(file, timeout=WAIT)
"""
SEND_ONCE = """\
def send(file):
    try:
        bank.put(file, timeout=WAIT)
    except bank.Timeout:
        if not bank.has(file.digest):
            raise
"""
COVER = """\
# Export of September 2025

- `september.xml`: what went to the bank, 214 payments, 48,211.07 EUR
- `ledger.csv`: what it was made of
"""
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]
SERIES = [
    {"name": "Harbour", "values": [18200, 17100, 19800, 20400, 19900, 21300]},
    {"name": "Station", "values": [14900, 15600, 18700, 19900, 21800, 24100]},
]
ROWS = [["First", 55100, 49200, "-10.7 %"], ["Second", 61600, 65800, "+6.8 %"]]
REPORT = "Station overtook Harbour in May.\n\n- First quarter: 55,100 and 49,200\n- Second: 61,600 and 65,800\n"
TOO_LONG = "The context window is 128,000 tokens; this request has 131,410."

TURNS: dict[str, list[Any]] = {
    INVOICES: [
        {
            "text": "I look at the ledger and at the export first.",
            "calls": [LOOK, read("ledger.csv"), read("export.py")],
        },
        {
            "text": TWICE,
            "calls": [
                run(
                    "BANK_ENV=test python export.py --month 2025-09 --wait 60 --out /tmp/september.xml \\\n"
                    "  && python compare.py /tmp/september.xml ledger.csv --fail-on-difference \\\n"
                    "  && rm /tmp/september.xml"
                )
            ],
        },
        {"text": "With a wait of 60 seconds the September run is clean: no invoice is sent twice."},
    ],
    EXPORT: [
        {
            "text": "Three steps, in this order. None of them reaches the bank.",
            "calls": [
                run("BANK_ENV=test python export.py --month 2025-09 --out september.xml"),
                call("files_write", path="for-the-auditor/README.md", content=COVER),
                run("tar --create --gzip --file september.tar.gz september.xml ledger.csv"),
            ],
        },
        {"text": "The export of September is packed: `september.tar.gz`."},
    ],
    RETRY: [
        {"calls": [read("export.py")]},
        {
            "text": "`send` gives up after ten seconds and sends the file again, whatever became of the first one. "
            "It should ask the bank before it does.",
            "calls": [call("files_edit", path="export.py", old=SEND, new=SEND_ONCE)],
        },
        {"text": "The export asks the bank before it sends a file again."},
    ],
    SHELVES: [
        {"text": "I read the takings of both shops.", "calls": [LOOK, read("takings.csv")]},
        {
            "calls": [
                call("chart_show", title="Takings by month", kind="bar", labels=MONTHS, series=SERIES, unit="EUR"),
                call("table_show", title="Quarters", columns=["Quarter", "Harbour", "Station", "Change"], rows=ROWS),
                call("report_write", name="takings-2025.md", title="Takings of 2025", text=REPORT),
            ]
        },
        {
            "text": "**Station overtook Harbour in May** and has stayed ahead. The write-up is two pages; both figures "
            "come from the tills, so returns are not in them."
        },
    ],
    BACKUP: [{"calls": [LOOK, read("backup.log")]}, {"text": SLOW}],
    NOTES: [
        {"text": "I read the change log first.", "calls": [LOOK, read("CHANGELOG.md")]},
        {"text": STREAM + MORE * 60, "pause_seconds": 0.5},
    ],
    PHOTOS: [
        {
            "text": "214 photos, 209 of them have a number.",
            "calls": [run("echo 209 renamed"), run("rm -rf photos/left")],
        },
        {"text": "209 photos carry their article number now. The five without one are still where they were."},
    ],
    CUSTOMERS: [
        {"text": "I read the file that the old shop wrote.", "calls": [LOOK]},
        {"refusal": {"status": 400, "code": "context_length_exceeded", "message": TOO_LONG}},
    ],
    LICENCES: [{"text": "Forty-one packages: 29 MIT, 9 Apache-2.0, 3 BSD-3-Clause. Two have no licence file."}],
    PRICES: [{"text": "Up to 5 kg the second carrier is the cheapest in every zone but the islands."}],
    SHELF_PLAN: [{"text": f"Aisle {n}.", "calls": [LOOK]} for n in range(1, 12)],
    REFUND: [
        {"text": "The parcel came back on Monday.", "calls": [run("python pay_back.py 88-1402 --amount 23.90")]},
        {"text": "Nobody answered in time, so order 88-1402 is not paid back. Ask me again when somebody can look."},
    ],
    PAYROLL: [
        {"text": "Twelve people, 31,480.00 EUR in all.", "calls": [run("python wages.py --month 2025-10 --send")]},
        {"text": "The wages of October are sent."},
    ],
    ZONE: [
        {"text": "The zone has 14 records.", "calls": [run("echo moving 14 records; sleep 600")]},
        {"text": "The zone is moved."},
    ],
    STAGING: [
        {
            "text": "The dump is 3.1 GB, and its list can be read.",
            "calls": [
                run(
                    "pg_restore --clean --if-exists --no-owner --jobs=4 \\\n"
                    "    --dbname=shop_staging /backup/shop/tuesday.dump"
                )
            ],
        },
        {"text": "Staging is as it was on Tuesday."},
    ],
    MISSING: [{"text": "Atlases, and **both** guides to the harbour."}],
    "*": [{"text": "Done."}],
}
