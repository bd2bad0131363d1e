"""Display: how calls, changes, gates and times look, the same on the pages and in the admin; `json` for programs."""
