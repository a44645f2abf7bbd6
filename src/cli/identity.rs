//! `callboard workspace identity`.
use super::commands::print;
use crate::{
    access::{Author, workspace},
    error::CannotStart,
    http::views::IdentityView,
};
use clap::Args;
use entities::{
    Error,
    db::Db,
    legal_identity::{self as store, Model},
    tenant,
    values::{Country, E164, Text},
};

/// `none` takes it back.
fn text<const MAX: usize>(typed: &str) -> Result<Part<Text<1, MAX>>, String> {
    match typed {
        "none" => Ok(Part(None)),
        // A shell's argument has no line breaks: \n stands for one.
        typed => Text::parse(&typed.replace("\\n", "\n")).map(|text| Part(Some(text))),
    }
}

fn number(typed: &str) -> Result<Part<E164>, String> {
    match typed {
        "none" => Ok(Part(None)),
        typed if typed.starts_with('+') => E164::parse(typed, Country::US).map(|number| Part(Some(number))),
        _ => Err("must start with + and the country code, as +12025550123; or `none`".into()),
    }
}

/// `us-tx=TX-2026-118`; nothing behind the `=` takes it back.
fn registration(typed: &str) -> Result<(String, String), String> {
    let (name, value) = typed
        .split_once('=')
        .ok_or("write NAME=NUMBER, as us-tx=TX-2026-118; nothing behind = takes it back")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Something, or nothing.
#[derive(Clone)]
pub struct Part<T>(Option<T>);

#[derive(Args)]
pub struct Asked {
    /// As it is registered; the service says it at the start of each live call. `none` takes it back, as for the others
    #[arg(long, value_name = "NAME", value_parser = text::<200>)]
    registered_name: Option<Part<Text<1, 200>>>,
    /// By which people know it, if that is another
    #[arg(long, value_name = "NAME", value_parser = text::<200>)]
    trade_name: Option<Part<Text<1, 200>>>,
    /// Who calls it reaches somebody who takes opt-outs
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    callback_number: Option<Part<E164>>,
    /// The same, free of charge
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    toll_free_number: Option<Part<E164>>,
    /// Where letters reach it; \n stands for a line break
    #[arg(long, value_name = "ADDRESS", value_parser = text::<500>)]
    postal_address: Option<Part<Text<1, 500>>>,
    /// A licence or a register, as us-tx=TX-2026-118; may be given several times
    #[arg(long = "registration", value_name = "NAME=NUMBER", value_parser = registration)]
    registrations: Vec<(String, String)>,
}

pub async fn run(db: &Db, by: &Author, (slug, asked): (&str, Asked), json: bool) -> Result<(), CannotStart> {
    let tenant = tenant::by_slug(&db.read, slug).await?;
    let known = store::of(&db.read, tenant.id).await?;
    let known = known.unwrap_or_else(|| Model::empty(tenant.id, by.now()));
    let mut wanted = known.identity();
    wanted.registered_name = asked.registered_name.map_or(wanted.registered_name, |part| part.0);
    wanted.trade_name = asked.trade_name.map_or(wanted.trade_name, |part| part.0);
    wanted.callback_number = asked.callback_number.map_or(wanted.callback_number, |part| part.0);
    wanted.toll_free_number = asked.toll_free_number.map_or(wanted.toll_free_number, |part| part.0);
    wanted.postal_address = asked.postal_address.map_or(wanted.postal_address, |part| part.0);
    for (name, value) in asked.registrations {
        match value.as_str() {
            "" => drop(wanted.registrations.0.remove(&name)),
            _ => drop(wanted.registrations.0.insert(name, value)),
        }
    }
    wanted.check()?;
    let transaction = db.begin().await.map_err(Error::from)?;
    let row = workspace::change_identity(&transaction, by, &tenant, &known, &wanted).await?;
    transaction.commit().await.map_err(Error::from)?;
    if json {
        print(&IdentityView::from(row));
        return Ok(());
    }
    let number = |number: Option<E164>| number.map(|number| number.as_str().to_owned());
    let lines = [
        ("registered name", row.registered_name),
        ("trade name", row.trade_name),
        ("callback number", number(row.callback_number)),
        ("toll-free number", number(row.toll_free_number)),
        (
            "postal address",
            row.postal_address.map(|address| address.replace('\n', ", ")),
        ),
    ];
    for (what, value) in lines {
        println!("{what:<18} {}", value.as_deref().unwrap_or("-"));
    }
    for (name, value) in row.registrations.0 {
        println!("{name:<18} {value}");
    }
    Ok(())
}
