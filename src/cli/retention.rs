//! `callboard workspace retention`.
use super::commands::print;
use crate::{
    access::{Author, workspace},
    error::CannotStart,
    settings::Settings,
};
use clap::Args;
use entities::{Error, db::Db, retention as store, tenant, values::Bounded};

/// Days, or for ever.
#[derive(Clone, Copy)]
pub struct Days<const MIN: i32>(Option<Bounded<MIN, 3650>>);

fn days<const MIN: i32>(text: &str) -> Result<Days<MIN>, String> {
    if text == "forever" {
        return Ok(Days(None));
    }
    let days = text
        .parse::<i64>()
        .map_err(|_| "must be a number of days, or `forever`".to_owned())?;
    Bounded::new(days).map(|days| Days(Some(days)))
}

#[derive(Args)]
pub struct Asked {
    /// Calls and rooms with all that belongs to them, from their end on; at least 31 days
    #[arg(long, value_name = "DAYS", value_parser = days::<31>)]
    sessions_days: Option<Days<31>>,
    /// What was said in them
    #[arg(long, value_name = "DAYS", value_parser = days::<1>)]
    transcripts_days: Option<Days<1>>,
    /// Contacts, from the completion of their campaign on
    #[arg(long, value_name = "DAYS", value_parser = days::<1>)]
    contacts_days: Option<Days<1>>,
    /// SMS and e-mails that have ended; at least 8 days, at most `event_retention_days`
    #[arg(long, value_name = "DAYS", value_parser = days::<8>)]
    messages_days: Option<Days<8>>,
    /// Lists that were read in
    #[arg(long, value_name = "DAYS", value_parser = days::<1>)]
    imports_days: Option<Days<1>>,
}

pub async fn run(
    settings: &Settings,
    db: &Db,
    by: &Author,
    (slug, asked): (&str, Asked),
    json: bool,
) -> Result<(), CannotStart> {
    let tenant = tenant::by_slug(&db.read, slug).await?;
    let known = store::of(&db.read, tenant.id, by.now()).await?;
    let mut kept = known.settings();
    kept.sessions_days = asked.sessions_days.map_or(kept.sessions_days, |days| days.0);
    kept.transcripts_days = asked.transcripts_days.map_or(kept.transcripts_days, |days| days.0);
    kept.contacts_days = asked.contacts_days.map_or(kept.contacts_days, |days| days.0);
    kept.messages_days = asked.messages_days.map_or(kept.messages_days, |days| days.0);
    kept.imports_days = asked.imports_days.map_or(kept.imports_days, |days| days.0);
    workspace::check_retention(&known.settings(), &kept, settings.limits()?.retention.events)?;
    let transaction = db.begin().await.map_err(Error::from)?;
    let kept = workspace::change_retention(&transaction, by, &tenant, &known, &kept).await?;
    transaction.commit().await.map_err(Error::from)?;
    if json {
        print(&kept);
        return Ok(());
    }
    let lines = [
        ("sessions", kept.sessions_days.map(Bounded::get), "forever"),
        (
            "transcripts",
            kept.transcripts_days.map(Bounded::get),
            "as long as sessions",
        ),
        ("contacts", kept.contacts_days.map(Bounded::get), "forever"),
        (
            "messages",
            kept.messages_days.map(Bounded::get),
            "as long as this server keeps events",
        ),
        ("imports", kept.imports_days.map(Bounded::get), "forever"),
    ];
    for (what, days, otherwise) in lines {
        match days {
            Some(days) => println!("{what:<12} {days} days"),
            None => println!("{what:<12} {otherwise}"),
        }
    }
    Ok(())
}
