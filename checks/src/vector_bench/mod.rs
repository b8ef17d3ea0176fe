//! Duration and accuracy of searches among many vectors in a file.

use std::time::{Duration, Instant};

use agent::{
    core::BoxError,
    memory::Filter,
    retrieval::{Record, Vector, VectorQuery, VectorStore},
    search::cosine,
    store::SqliteVectorStore,
};

/// Number of records stored per batch.
const BATCH: usize = 1_000;

/// Measures searches among many vectors in a SQLite file, and checks that they find the nearest
/// ones.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of vectors.
    #[arg(long, default_value_t = 10_000)]
    vectors: usize,
    /// Number of dimensions.
    #[arg(long, default_value_t = 512)]
    dimensions: usize,
    /// Number of searches of each kind.
    #[arg(long, default_value_t = 20)]
    searches: usize,
}

/// Pseudo-random numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.next()).collect()
    }
}

pub(crate) async fn run(args: &Args) -> Result<bool, BoxError> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("vectors.db");
    let store = SqliteVectorStore::open(&path)?;
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let vectors: Vec<Vec<f32>> = (0..args.vectors).map(|_| numbers.vector(args.dimensions)).collect();
    let began = Instant::now();
    for (at, batch) in vectors.chunks(BATCH).enumerate() {
        let record = |(n, values): (usize, &Vec<f32>)| {
            let number = at * BATCH + n;
            let text = format!("record {number}, of the group {}, like {}", number % 100, number % 7);
            Record::new(number.to_string(), text).with("group", number % 100).vector(vector(values.clone()))
        };
        store.upsert("c", batch.iter().enumerate().map(record).collect()).await?;
    }
    let kept = began.elapsed();
    let size = std::fs::metadata(&path)?.len() >> 20;
    println!("{} vectors of {} numbers: kept in {kept:.1?}, {size} MiB", args.vectors, args.dimensions);
    let mut right = true;
    let asked: Vec<Vec<f32>> = (0..args.searches).map(|_| numbers.vector(args.dimensions)).collect();
    let near = |values: &Vec<f32>| VectorQuery::nearest(vector(values.clone())).top_k(10);
    right &= measure("by vector", &store, &vectors, &asked, near, |_| true).await?;
    let filtered = |values: &Vec<f32>| near(values).filter(Filter::eq("group", 7));
    right &=
        measure("by vector, one of a hundred admitted", &store, &vectors, &asked, filtered, |n| n % 100 == 7).await?;
    let words = |_: &Vec<f32>| VectorQuery::text("group 42").top_k(10);
    measure("by words", &store, &[], &asked, words, |_| true).await?;
    let both = |values: &Vec<f32>| VectorQuery::text("group 42").vector(vector(values.clone())).top_k(10);
    measure("by both", &store, &[], &asked, both, |_| true).await?;
    Ok(right)
}

fn vector(values: Vec<f32>) -> Vector {
    Vector::of("bench:random", values)
}

/// Returns the median and maximum duration of searches; true if all found the nearest vectors of
/// `all`, or there is nothing to compare with.
async fn measure(
    what: &str,
    store: &SqliteVectorStore,
    all: &[Vec<f32>],
    asked: &[Vec<f32>],
    query: impl Fn(&Vec<f32>) -> VectorQuery,
    admits: impl Fn(usize) -> bool,
) -> Result<bool, BoxError> {
    let (mut times, mut right): (Vec<Duration>, bool) = (Vec::new(), true);
    for values in asked {
        let query = query(values);
        let began = Instant::now();
        let found = store.search("c", &query).await?;
        times.push(began.elapsed());
        let nearest = all
            .iter()
            .enumerate()
            .filter(|(n, _)| admits(*n))
            .max_by(|a, b| cosine(a.1, values).total_cmp(&cosine(b.1, values)));
        right &= nearest.is_none_or(|(n, _)| found.first().is_some_and(|found| found.record.id == n.to_string()));
    }
    times.sort();
    let worst = times.last().copied().unwrap_or_default();
    println!(
        "{what}: {:.1?} in the middle, {worst:.1?} at worst",
        times.get(times.len() / 2).copied().unwrap_or_default()
    );
    Ok(right)
}
