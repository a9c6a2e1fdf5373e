"""Reports on fitted models: numbers first, then a page of HTML, or pictures with matplotlib."""
