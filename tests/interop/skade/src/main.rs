// SPDX-License-Identifier: Apache-2.0
//! The published gRPC client of skade-katalog against a catalog server.
//!
//! check URI                         every call of its catalog interface; fails with what was not as it should be
//! bench URI OP CONNECTIONS SECONDS  OP: exists, load, list; prints calls a second and latencies
use iceberg::io::LocalFsStorageFactory;
use iceberg::spec::{FormatVersion, NestedField, PrimitiveType, Schema, Type};
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::{Catalog, ErrorKind, NamespaceIdent, TableCreation, TableIdent};
use skade_katalog_grpc::client::GrpcCatalog;
use skade_katalog_grpc::pb;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn expect(what: &str, holds: bool) -> Result<(), Failure> {
    if holds {
        println!("ok {what}");
        Ok(())
    } else {
        Err(format!("not so: {what}").into())
    }
}

fn fails<T>(result: iceberg::Result<T>, kind: ErrorKind) -> bool {
    matches!(result, Err(e) if e.kind() == kind)
}

fn schema() -> Result<Schema, Failure> {
    let fields = vec![
        NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into(),
        NestedField::optional(2, "name", Type::Primitive(PrimitiveType::String)).into(),
    ];
    Ok(Schema::builder().with_schema_id(0).with_fields(fields).build()?)
}

async fn namespaces(catalog: &GrpcCatalog) -> Result<NamespaceIdent, Failure> {
    let ns = NamespaceIdent::new("rust".into());
    let inner = NamespaceIdent::from_vec(vec!["rust".into(), "in.ner ü".into()])?;
    let properties = HashMap::from([("owner".to_string(), "Zoë".to_string())]);
    expect("no namespace yet", !catalog.namespace_exists(&ns).await?)?;
    expect("a missing one is not found", fails(catalog.get_namespace(&ns).await, ErrorKind::NamespaceNotFound))?;
    catalog.create_namespace(&ns, properties.clone()).await?;
    catalog.create_namespace(&inner, HashMap::new()).await?;
    let again = catalog.create_namespace(&ns, HashMap::new()).await;
    expect("it is there once", fails(again, ErrorKind::NamespaceAlreadyExists))?;
    expect("it exists", catalog.namespace_exists(&ns).await?)?;
    let got = catalog.get_namespace(&ns).await?;
    expect("its properties", got.properties().get("owner") == properties.get("owner"))?;
    expect("it is listed", catalog.list_namespaces(None).await?.contains(&ns))?;
    expect("its child is listed", catalog.list_namespaces(Some(&ns)).await? == vec![inner])?;
    Ok(ns)
}

async fn create(catalog: &GrpcCatalog, ns: &NamespaceIdent) -> Result<TableIdent, Failure> {
    let ident = TableIdent::new(ns.clone(), "t".into());
    let creation = || -> Result<TableCreation, Failure> {
        Ok(TableCreation::builder().name("t".into()).schema(schema()?).build())
    };
    expect("no table yet", !catalog.table_exists(&ident).await?)?;
    expect("a missing one is not found", fails(catalog.load_table(&ident).await, ErrorKind::TableNotFound))?;
    let nowhere = NamespaceIdent::new("nowhere".into());
    expect("nor one in no namespace", catalog.create_table(&nowhere, creation()?).await.is_err())?;
    let created = catalog.create_table(ns, creation()?).await?;
    let loaded = catalog.load_table(&ident).await?;
    expect("created and loaded are one", created.metadata() == loaded.metadata())?;
    expect("it is of format 2", loaded.metadata().format_version() == FormatVersion::V2)?;
    expect("it exists", catalog.table_exists(&ident).await?)?;
    expect("it is listed", catalog.list_tables(ns).await? == vec![ident.clone()])?;
    let again = catalog.create_table(ns, creation()?).await;
    expect("it is there once", fails(again, ErrorKind::TableAlreadyExists))?;
    Ok(ident)
}

async fn commit(catalog: &GrpcCatalog, ident: &TableIdent) -> Result<(), Failure> {
    let before = catalog.load_table(ident).await?;
    let tx = Transaction::new(&before);
    let tx = tx.update_table_properties().set("answer".into(), "42".into()).apply(tx)?;
    let after = tx.commit(catalog).await?;
    expect("a commit moves the pointer", after.metadata_location() != before.metadata_location())?;
    let loaded = catalog.load_table(ident).await?;
    expect("and is there", loaded.metadata().properties().get("answer").map(String::as_str) == Some("42"))?;
    for round in 0..20 {
        let tx = Transaction::new(&catalog.load_table(ident).await?);
        tx.update_table_properties().set("round".into(), round.to_string()).apply(tx)?.commit(catalog).await?;
    }
    let last = catalog.load_table(ident).await?;
    expect("twenty more", last.metadata().properties().get("round").map(String::as_str) == Some("19"))
}

/// What the client's own types would not send.
async fn wire(uri: &str, ident: &TableIdent) -> Result<(), Failure> {
    let mut client = pb::catalog_client::CatalogClient::connect(uri.to_string()).await?;
    client.config(pb::ConfigRequest { warehouse: String::new() }).await?;
    let request = |requirement: &str, update: &str| pb::CommitTableReq {
        namespace: ident.namespace().clone().inner(),
        name: ident.name().to_string(),
        requirements_json: vec![requirement.to_string()],
        updates_json: vec![update.to_string()],
    };
    let set = r#"{"action":"set-properties","updates":{"a":"b"}}"#;
    let stale = r#"{"type":"assert-table-uuid","uuid":"00000000-0000-0000-0000-000000000000"}"#;
    let aborted = client.commit_table(request(stale, set)).await.err().map(|s| s.code());
    expect("a stale commit is aborted", aborted == Some(tonic::Code::Aborted))?;
    let schema_is = r#"{"type":"assert-current-schema-id","current-schema-id":0}"#;
    for bad in ["{", r#"{"action":"dance"}"#, "[]"] {
        let code = client.commit_table(request(schema_is, bad)).await.err().map(|s| s.code());
        expect("a wrong update is an invalid argument", code == Some(tonic::Code::InvalidArgument))?;
    }
    Ok(())
}

async fn check(uri: &str) -> Result<(), Failure> {
    let catalog = GrpcCatalog::connect(uri, Arc::new(LocalFsStorageFactory)).await?;
    let ns = namespaces(&catalog).await?;
    let ident = create(&catalog, &ns).await?;
    commit(&catalog, &ident).await?;
    wire(uri, &ident).await?;
    catalog.drop_table(&ident).await?;
    expect("dropped is gone", !catalog.table_exists(&ident).await?)?;
    expect("and is not found", fails(catalog.drop_table(&ident).await, ErrorKind::TableNotFound))
}

async fn call(client: &mut pb::catalog_client::CatalogClient<tonic::transport::Channel>, op: &str) -> Result<(), Failure> {
    let table = || pb::TableIdentMsg { namespace: vec!["bench".into()], name: "t0".into() };
    match op {
        "exists" => drop(client.table_exists(table()).await?),
        "load" => drop(client.load_table(table()).await?),
        "list" => drop(client.list_tables(pb::NamespaceIdentMsg { levels: vec!["bench".into()] }).await?),
        other => return Err(format!("what is {other}?").into()),
    }
    Ok(())
}

async fn bench(uri: &str, op: &str, connections: usize, seconds: f64) -> Result<(), Failure> {
    let mut tasks = Vec::new();
    let start = Instant::now();
    for _ in 0..connections {
        let (uri, op) = (uri.to_string(), op.to_string());
        tasks.push(tokio::spawn(async move {
            let mut client = pb::catalog_client::CatalogClient::connect(uri).await?;
            let mut micros = Vec::new();
            while start.elapsed() < Duration::from_secs_f64(seconds) {
                let began = Instant::now();
                call(&mut client, &op).await?;
                micros.push(began.elapsed().as_micros() as u64);
            }
            Ok::<_, Failure>(micros)
        }));
    }
    let mut micros = Vec::new();
    for task in tasks {
        micros.extend(task.await??);
    }
    let elapsed = start.elapsed().as_secs_f64();
    micros.sort_unstable();
    let at = |part: f64| micros[((micros.len() - 1) as f64 * part) as usize];
    println!("{:.0} {} {} {}", micros.len() as f64 / elapsed, at(0.5), at(0.99), micros.len());
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["check", uri] => check(uri).await,
        ["bench", uri, op, connections, seconds] => bench(uri, op, connections.parse()?, seconds.parse()?).await,
        _ => Err("usage: skade-client check URI | bench URI OP CONNECTIONS SECONDS".into()),
    }
}
