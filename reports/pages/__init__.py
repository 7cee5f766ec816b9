"""One module a page: rows of the published tables -> one frozen model of text. Pure."""
