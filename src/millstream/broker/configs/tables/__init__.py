"""Nothing but tables: one config in two lines, what it is and a phrase about it. `configs.catalogue` reads them."""
