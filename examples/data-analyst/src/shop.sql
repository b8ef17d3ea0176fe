-- The sample database: a teapot shop, with 720 orders of the year 2025.
create table customers (id integer primary key, name text not null, city text not null);
create table products (id integer primary key, name text not null, price_cents integer not null);
create table orders (
  id integer primary key,
  customer integer not null references customers,
  product integer not null references products,
  placed text not null, -- a date, such as 2025-03-14
  pieces integer not null
);
insert into customers values
  (1, 'Ada', 'Bern'), (2, 'Eve', 'Basel'), (3, 'Max', 'Bern'), (4, 'Noor', 'Zurich'), (5, 'Lia', 'Geneva');
insert into products values
  (1, 'teapot', 3900), (2, 'cup', 1250), (3, 'green tea', 990), (4, 'kettle', 7800);
-- More orders towards the end of the year; the remainders spread customers, products and amounts.
with recursive n(i) as (select 1 union all select i + 1 from n where i < 720)
insert into orders
  select i, 1 + (i * i + i / 7) % 5, 1 + (i * 7 + i / 11) % 4,
    date('2025-01-01', '+' || (364 - (720 - i) * (720 - i) * 364 / (720 * 720)) || ' days'), 1 + (i * 5) % 3
  from n;
