def write_page(folder): pass
