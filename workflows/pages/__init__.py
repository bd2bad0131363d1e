"""The pages of workflows: the selector, the form, the runs, and the menu of the composer."""
