-- The number under which a site's database knows this ledger: one row, written at the first start of the role sites.
CREATE TABLE IF NOT EXISTS sites_ledger (
    only_row INTEGER NOT NULL PRIMARY KEY,
    ledger   BIGINT  NOT NULL
);
