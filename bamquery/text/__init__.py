"""Text for people and pages: names, terminals, places in statements, HTML. Below all rooms."""
