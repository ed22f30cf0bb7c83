// SPDX-License-Identifier: Apache-2.0
//! What the skade crate does on a table that is there already: skade-peer WHAT METADATA [SNAPSHOT [SNAPSHOT]]
//!
//! scan METADATA, count METADATA, plan METADATA, branch METADATA SNAPSHOT (a scan of it, streamed),
//! changes METADATA FROM TO. Prints the number of rows or files. The table is registered in a catalog of its own
//! under TMPDIR.
use futures::TryStreamExt;
use iceberg::Catalog;
use std::env;

type Failure = Box<dyn std::error::Error>;

async fn open(metadata: &str) -> Result<skade::Table, Failure> {
    let folder = env::temp_dir().join(format!("skade-{}", std::process::id()));
    let warehouse = skade::open(&folder).await?;
    let ident = warehouse.table_ident("b.t")?;
    let catalog = warehouse.catalog();
    catalog.create_namespace(ident.namespace(), Default::default()).await?;
    catalog.register_table(&ident, metadata.to_string()).await?;
    let table = warehouse.table("b.t").await?;
    std::fs::remove_dir_all(&folder)?;
    Ok(table)
}

async fn stream(table: &skade::Table, snapshot: i64) -> Result<u64, Failure> {
    let scan = table.inner().scan().snapshot_id(snapshot).build()?;
    let mut rows = scan.to_arrow().await?;
    let mut total = 0;
    while let Some(batch) = rows.try_next().await? {
        total += batch.num_rows() as u64;
    }
    Ok(total)
}

async fn plan(table: &skade::Table) -> Result<u64, Failure> {
    let mut files = table.inner().scan().build()?.plan_files().await?;
    let mut total = 0;
    while files.try_next().await?.is_some() {
        total += 1;
    }
    Ok(total)
}

async fn run(words: &[String]) -> Result<u64, Failure> {
    let table = open(&words[1]).await?;
    Ok(match words[0].as_str() {
        "scan" => table.read().await?.iter().map(|batch| batch.num_rows() as u64).sum(),
        "count" => table.count().await?,
        "plan" => plan(&table).await?,
        "branch" => stream(&table, words[2].parse()?).await?,
        "changes" => table.read_changelog(Some(words[2].parse()?), words[3].parse()?).await?.num_rows() as u64,
        other => return Err(format!("what is {other}?").into()),
    })
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = env::args().skip(1).collect();
    println!("{}", run(&words).await?);
    Ok(())
}
