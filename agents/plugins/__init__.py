"""The plugins that ship with Agentsite: one folder each, with the same file names.

`tools.py` declares tools and `plugin.py` a Plugin; the other modules of a folder serve these two. A plugin here is
discovered in the same way as one in an app of your own.
"""
