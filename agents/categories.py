"""The categories of what ships with Agentsite, and the class of all of them: `from agents.categories import Category`.

Tools and workflows have registries of their own, and share only this small class (S80).
"""

from agents.engine.tools.category import Category

__all__ = ["Category"]

FILES = Category("files", "Files", "file", 10)
SHELL = Category("shell", "Commands", "term", 20)
TABLES = Category("tables", "Tables", "lines", 30)
SHOW = Category("show", "Charts and tables", "chart", 40)
REPORTS = Category("reports", "Reports", "file", 50)
SKILLS = Category("skills", "Skills", "book", 60)
MEMORY = Category("memory", "Memory", "book", 58)
BLUEPRINTS = Category("blueprints", "Blueprints", "book", 62)
TRIGGERS = Category("triggers", "Triggers", "clock", 55)
TOOLS = Category("tools", "More tools", "", 65)
RESULTS = Category("results", "Results", "", 70)
DOCUMENTS = Category("documents", "Documents", "search", 15)
PROJECTS = Category("projects", "Projects", "folder", 10)
CODE = Category("code", "Code", "edit", 20)
OTHER = Category("other", "Other", "", 1000)
