-- A small shop. Each query has a fresh copy of it, so that nothing that is asked changes it.
create table customers (id integer primary key, name text, city text);
create table orders (id integer primary key, customer integer references customers, placed text, total_cents integer);
insert into customers values (1, 'Ada', 'Bern'), (2, 'Eve', 'Basel'), (3, 'Max', 'Bern');
insert into orders values
  (1, 1, '2026-01-05', 3900), (2, 1, '2026-02-11', 1250), (3, 2, '2026-02-14', 7800),
  (4, 3, '2026-03-02', 990), (5, 3, '2026-03-09', 4400), (6, 1, '2026-03-21', 2100);
