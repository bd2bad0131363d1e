"""Pictures of every page, in four variants, of a real site that holds a small company's work.

`turns` is what its model says, `company` what its people did, `pages` what is looked at, `camera` how.
"""
