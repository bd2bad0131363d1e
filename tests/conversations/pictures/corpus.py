"""Diagrams that people draw, one of each kind, and diagrams that attack."""

from __future__ import annotations

KINDS = {
    "flowchart": """flowchart LR
  A[Shop order] --> B(export.py)
  B -->|pain.001| C{Bank gateway}
  C -->|ok| D[(Paid)]
  C -.->|no answer in 10 s| B
  subgraph S [Our side]
    A
    B
  end
""",
    "sequence": """sequenceDiagram
  autonumber
  participant U as User
  actor A as Agent
  participant T as Tool
  U->>A: Pay the invoices
  activate A
  A->>T: run export.py
  T-->>A: 12 files
  loop Every file
    A->>T: send
  end
  alt accepted
    A-->>U: Done
  else refused
    A-xU: Failed
  end
  Note over A,T: waits for approval
  deactivate A
""",
    "class": """classDiagram
  class Animal {
    +String name
    -int age
    +eat(food) bool
  }
  class Duck
  Animal <|-- Duck : is a
  Animal "1" --> "many" Food : eats
  <<interface>> Food
  note for Duck "can fly"
""",
    "state": """stateDiagram-v2
  [*] --> Waiting
  Waiting --> Running : claimed
  Running --> Paused : gate
  Paused --> Running : approved
  Running --> [*]
  state Running {
    [*] --> Asking
    Asking --> Calling
  }
  note right of Paused : a person is needed
""",
    "er": """erDiagram
  CUSTOMER ||--o{ ORDER : places
  ORDER ||--|{ LINE : contains
  CUSTOMER {
    string name PK
    int id "the number"
  }
  ORDER {
    int id FK
    date placed
  }
""",
    "gantt": """gantt
  title Release plan
  dateFormat YYYY-MM-DD
  axisFormat %d %b
  section Build
  Design      :done, a1, 2026-01-01, 10d
  Code        :active, a2, after a1, 20d
  section Ship
  Test        :crit, a3, after a2, 7d
  Release     :milestone, after a3, 0d
""",
    "pie": """pie showData title Where the time goes
  "Model" : 62.5
  "Tools" : 21
  "People" : 12
  "Rest" : 4.5
""",
    "journey": """journey
  title My working day
  section Morning
    Make tea: 5: Me
    Read mail: 2: Me, Cat
  section Evening
    Go home: 4: Me
""",
    "gitgraph": """gitGraph
  commit id: "start"
  branch feature
  checkout feature
  commit
  commit tag: "v0.9"
  checkout main
  commit
  merge feature tag: "v1.0"
  commit type: HIGHLIGHT
""",
    "mindmap": """mindmap
  root((Agentsite))
    Record
      Ledger
      Steps
    People
      Approvals
      ::icon(fa fa-book)
    Agents
      Tools
      Models
""",
    "timeline": """timeline
  title History
  section Early
  2002 : LinkedIn
  2004 : Facebook : Google
  section Late
  2006 : Twitter
""",
    "quadrant": """quadrantChart
  title Reach and engagement
  x-axis Low Reach --> High Reach
  y-axis Low Engagement --> High Engagement
  quadrant-1 We should expand
  quadrant-2 Need to promote
  quadrant-3 Re-evaluate
  quadrant-4 May be improved
  Campaign A: [0.3, 0.6]
  Campaign B: [0.45, 0.23]
  Campaign C: [0.78, 0.84]
""",
    "xychart": """xychart-beta
  title "Sales revenue"
  x-axis [jan, feb, mar, apr, may]
  y-axis "Revenue (EUR)" 4000 --> 11000
  bar [5000, 6000, 7500, 8200, 9500]
  line [5000, 6000, 7500, 8200, 9500]
""",
    "sankey": """sankey-beta
Model,Tools,40
Model,People,20
Tools,Done,35
People,Done,18
Tools,Failed,5
""",
    "block": """block-beta
  columns 3
  a["Web"] b["Worker"] c["Model"]
  d["Database"]:3
  a --> d
  b --> d
""",
    "requirement": """requirementDiagram
  requirement test_req {
    id: 1
    text: the test text.
    risk: high
    verifymethod: test
  }
  element test_entity {
    type: simulation
  }
  test_entity - satisfies -> test_req
""",
    "packet": """packet-beta
0-15: "Source Port"
16-31: "Destination Port"
32-63: "Sequence Number"
""",
    "c4": """C4Context
  title System Context
  Person(user, "User", "A person")
  System(site, "Agentsite", "Works together")
  System_Ext(model, "Model", "Answers")
  Rel(user, site, "Uses")
  Rel(site, model, "Asks", "HTTPS")
""",
    "kanban": """kanban
  todo[Todo]
    t1[Write docs]
    t2[Make a test]
  doing[In progress]
    t3[Draw diagrams]
""",
    "architecture": """architecture-beta
  group api(cloud)[API]
  service db(database)[Database] in api
  service disk1(disk)[Storage] in api
  service server(server)[Server] in api
  db:L -- R:server
  disk1:T -- B:server
""",
    "radar": """radar-beta
  axis m["Math"], s["Science"], e["English"]
  curve a["Alice"]{85, 90, 80}
  curve b["Bob"]{70, 75, 85}
  max 100
""",
}
"""One of each kind."""
STYLED = """flowchart TD
  A[Start] --> B{Check}
  B -- yes --> C[Good]:::ok
  B -- no --> D[Bad]
  classDef ok fill:#9f9,stroke:#333,stroke-width:2px
  style D fill:pink,stroke:#f00,color:#fff
  style A fill:#223344
"""
"""With colours of its author, one of which makes a text unreadable."""

EVIL = "https://evil.example"
INTRUDERS = {
    "script": 'flowchart LR\n A["<script>alert(1)</script>"] --> B["<b>bold</b>"]',
    "image tag": 'flowchart LR\n A["<img src=x onerror=alert(1)>"] --> B',
    "foreign object": 'flowchart LR\n A["<foreignObject><body onload=alert(1)></foreignObject>"] --> B',
    "click": f'flowchart LR\n A-->B\n click A "javascript:alert(1)" "tip"\n click B href "{EVIL}/"',
    "call": "flowchart LR\n A-->B\n click A call alert(1)",
    "link of a participant": f"sequenceDiagram\n participant A\n link A: Dash @ {EVIL}/\n A->>A: x",
    "link of a class": f'classDiagram\n class A\n link A "{EVIL}" "x"\n click A href "javascript:alert(1)"',
    "link of a task": 'gantt\n dateFormat YYYY-MM-DD\n section S\n T :a, 2026-01-01, 3d\n click a href "javascript:x"',
    "image node": f'flowchart LR\n A@{{ img: "{EVIL}/p.png", label: "x", w: 60, h: 60 }} --> B',
    "sprite": f'C4Context\n Person(u, "U", $sprite="{EVIL}/a.png", $link="{EVIL}")',
    "style": f"flowchart LR\n A-->B:::x\n style A fill:url({EVIL}/a)\n classDef x stroke:url({EVIL}/b)",
    "escaped style": f"flowchart LR\n A-->B\n style A stroke:\\75 rl({EVIL}/a)",
    "settings": (
        '%%{init: {"theme": "forest", "htmlLabels": true, "securityLevel": "loose",'
        f' "fontFamily": "x;}} *{{background:url({EVIL})}}",'
        f' "themeCSS": "@import url({EVIL}/a.css); .node{{fill:url({EVIL}/x)}}"}}}}%%\nflowchart LR\n A-->B'
    ),
    "nested settings": '%%%%{x}%%{init: {"theme": "forest"}}%%\nflowchart LR\n A-->B',
    "front matter": "---\ntitle: Mine\nconfig:\n  theme: forest\n  securityLevel: loose\n---\nflowchart LR\n A-->B",
    "entities": "flowchart LR\n A[\"&xxe; <!DOCTYPE x [<!ENTITY a SYSTEM '/etc/x'>]> #lt;b#gt;\"] --> B",
    "control characters": 'flowchart LR\n A["a\x00b\x01c \ufffe"] --> B',
    "end of the style": "flowchart LR\n A-->B\n style A fill:red;} *{x:y}</style><script>alert(1)</script>",
    "accessible title": "flowchart LR\n accTitle: <script>x</script>\n accDescr: </desc><script>y</script>\n A-->B",
}
"""Sources that try to bring a script, a link or another document into the picture."""

ENDLESS = (
    "gantt\n dateFormat YYYY-MM-DD\n tickInterval 1millisecond\n section a\n X: 0001-01-01, 9999999d\n excludes sunday"
)
"""A chart of ten million years with a mark for each millisecond."""


def _lines(*lines: str) -> str:
    return "\n".join(lines)


BOMBS = {
    "5,000 nodes": _lines("flowchart LR", *(f"A{n}-->A{n + 1}" for n in range(5_000))),
    "as many nodes as fit": _lines("flowchart LR", *(f"A{n}-->A{n + 1}" for n in range(1_500))),
    "3,600 edges": _lines(
        "flowchart LR", f"{' & '.join(map(str, range(60)))} --> {' & '.join(map(str, range(60, 120)))}"
    ),
    "300 nested subgraphs": _lines("flowchart LR", *(f"subgraph s{n}" for n in range(300)), "A-->B", *["end"] * 300),
    "nested states": _lines("stateDiagram-v2", *(f"state s{n} {{" for n in range(800)), "A-->B", *["}"] * 800),
    "a deep mind map": _lines("mindmap", *(" " * n + "n" for n in range(190))),
    "brackets": "flowchart LR\nA" + "[" * 19_000,
    "a billion columns": "block-beta\n columns 1000000000\n a b c\n space:1000000000 d:999999999",
    "a long packet": 'packet-beta\n0-99999999: "x"\n',
    "a mark for each second": "gantt\n dateFormat YYYY-MM-DD\n tickInterval 1second\n section a\n X: 2000-01-01, 9999d",
    "many participants": _lines("sequenceDiagram", *(f"A{n}->>A{n + 1}: x" for n in range(1_000))),
    "many commits": "gitGraph\n" + "commit\n" * 2_500,
    "one long word": f"flowchart LR\nA[{'x' * 19_000}]",
    "20 kB and a byte": "flowchart LR\n" + "%" * (20_001 - 13),
    "200,000 characters": "flowchart LR\n" + "A-->B\n" * 33_000,
    "endless": ENDLESS,
}
"""Sources that try to take all time or memory."""
