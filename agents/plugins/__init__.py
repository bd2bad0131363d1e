"""What we ship for agents: one folder per plugin, the same file names in each.

`tools.py` declares tools and `plugin.py` a Plugin; whatever stands beside them serves these two. A plugin is found
because it is here, through the same door as one in an app of your own.
"""
