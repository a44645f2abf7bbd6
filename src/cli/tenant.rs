//! `callboard tenant`: workspaces as their operator sees them. Works beside a running `serve`, which looks at the same rows:
//! inside the transaction of each dial, and every 30 seconds.
use super::commands::{open, print};
use crate::{
    access::{
        Author,
        workspace::{Change, change},
    },
    error::CannotStart,
    http::views::WorkspaceView,
};
use clap::{ArgAction, Subcommand};
use entities::{
    Error,
    db::Db,
    suspension,
    tenant::{self, Model},
    values::{Countries, Country, Moment, Text, Zone},
};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Tenant {
    /// Stop a workspace's dialling, from the next dial on; live calls continue
    Suspend {
        #[arg(long)]
        workspace: String,
        /// The reason, for `tenant show`; the workspace does not see it
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let a workspace dial again
    Resume {
        #[arg(long)]
        workspace: String,
    },
    /// List workspaces with what they may do
    List,
    /// Show what a workspace may do
    Show {
        #[arg(long)]
        workspace: String,
    },
    /// Set where a workspace is, or what its plan allows; what you leave out stays
    Set {
        #[arg(long)]
        workspace: String,
        /// How numbers without + are read from now on: ISO 3166-1 alpha-2. The time zone stays unless you give it too
        #[arg(long, value_parser = parse_country)]
        country: Option<Country>,
        /// The time zone for calls whose own is unknown, such as Europe/Berlin
        #[arg(long)]
        timezone: Option<Zone>,
        /// May it clone voices? `on` or `off`; applies to trainings that start from then on
        // A `bool` alone would be a flag without a value.
        #[arg(long, action = ArgAction::Set, value_parser = on_or_off, required_unless_present_any = ["country", "timezone", "countries"])]
        voice_clones: Option<bool>,
        /// Where its live calls may ring, such as DE,AT; `own`: in its own country only. Applies from the next dial on
        #[arg(long, value_parser = parse_countries)]
        countries: Option<Callable>,
    },
}

fn parse_country(text: &str) -> Result<Country, String> {
    text.parse()
}

/// What `--countries` says; `None` inside: its own country.
#[derive(Clone)]
pub struct Callable(Option<Countries>);

fn parse_countries(text: &str) -> Result<Callable, String> {
    match text {
        "own" => Ok(Callable(None)),
        names => Countries::parse(names).map(|countries| Callable(Some(countries))),
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither `on` nor `off`")),
    }
}

/// A workspace with what its operator decides.
#[derive(Serialize)]
struct TenantView {
    workspace: WorkspaceView,
    suspended: bool,
    suspended_since: Option<Moment>,
    suspended_reason: Option<String>,
    concurrency_limit: i32,
    inbound_reserve: i32,
    voice_clones: bool,
    /// Where its live calls may ring: what was set, else its own country.
    countries: Countries,
    created_at: Moment,
}

impl TenantView {
    fn of(tenant: &Model, suspension: Option<&suspension::Model>) -> Result<Self, Error> {
        Ok(TenantView {
            workspace: tenant.into(),
            suspended: suspension.is_some(),
            suspended_since: suspension.map(|row| row.since),
            suspended_reason: suspension.and_then(|row| row.reason.clone()),
            concurrency_limit: tenant.concurrency_limit,
            inbound_reserve: tenant.inbound_reserve,
            voice_clones: tenant.voice_clones,
            countries: tenant.callable_countries()?,
            created_at: tenant.created_at,
        })
    }

    fn standing(&self) -> String {
        let reason = self.suspended_reason.as_deref().map(|reason| format!(" ({reason})"));
        match self.suspended_since {
            Some(since) => format!("suspended since {since}{}", reason.unwrap_or_default()),
            None => "active".into(),
        }
    }
}

impl Tenant {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (_, db, clock, ids) = open(config).await?;
        match self {
            Tenant::Suspend { workspace, reason } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let reason = reason.map(|reason| Text::<1, 500>::parse(&reason)).transpose();
                let reason = reason.map_err(|why| Error::invalid("reason", why))?;
                let asked = suspension::Model {
                    tenant_id: tenant.id,
                    reason: reason.map(Text::into_string),
                    since: clock.now(),
                };
                let transaction = db.begin().await.map_err(Error::from)?;
                let row = suspension::begin(&transaction, asked).await?;
                transaction.commit().await.map_err(Error::from)?;
                if json {
                    print(&TenantView::of(&tenant, Some(&row))?);
                } else {
                    println!(
                        "Workspace {workspace} has dialled nothing since {}; contacts still waiting 24 hours later are skipped",
                        row.since
                    );
                }
            }
            Tenant::Resume { workspace } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let transaction = db.begin().await.map_err(Error::from)?;
                let was_suspended = suspension::lift(&transaction, tenant.id).await?;
                transaction.commit().await.map_err(Error::from)?;
                if json {
                    print(&TenantView::of(&tenant, None)?);
                } else if was_suspended {
                    println!("Workspace {workspace} resumes dialling within half a minute");
                } else {
                    println!("Workspace {workspace} was not suspended");
                }
            }
            Tenant::List => list(&db, json).await?,
            Tenant::Show { workspace } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let suspension = suspension::of(&db.read, tenant.id).await?;
                told(&TenantView::of(&tenant, suspension.as_ref())?, json);
            }
            Tenant::Set {
                workspace,
                country,
                timezone,
                voice_clones,
                countries,
            } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let by = Author::operator(ids, clock.now());
                let asked = Change {
                    country,
                    timezone,
                    voice_clones,
                    countries: countries.map(|Callable(countries)| countries),
                    ..Change::default()
                };
                let transaction = db.begin().await.map_err(Error::from)?;
                let tenant = change(&transaction, &by, tenant.id, &asked).await?;
                transaction.commit().await.map_err(Error::from)?;
                let suspension = suspension::of(&db.read, tenant.id).await?;
                told(&TenantView::of(&tenant, suspension.as_ref())?, json);
            }
        }
        db.close().await;
        Ok(())
    }
}

async fn list(db: &Db, json: bool) -> Result<(), CannotStart> {
    let suspensions = suspension::all(&db.read).await?;
    let of = |tenant: &Model| suspensions.iter().find(|row| row.tenant_id == tenant.id);
    let tenants = tenant::all(&db.read).await?;
    let views: Vec<_> = tenants
        .iter()
        .map(|tenant| TenantView::of(tenant, of(tenant)))
        .collect::<Result<_, _>>()?;
    if json {
        print(&views);
    } else {
        for view in views {
            println!(
                "{:<24}  {:<32}  {}",
                view.workspace.slug,
                view.workspace.name,
                view.standing()
            );
        }
    }
    Ok(())
}

fn told(view: &TenantView, json: bool) {
    if json {
        print(view);
    } else {
        show(view);
    }
}

fn show(view: &TenantView) {
    let TenantView { workspace, .. } = view;
    for (name, value) in [
        ("workspace", workspace.slug.clone()),
        ("name", workspace.name.clone()),
        ("id", workspace.id.to_string()),
        ("country", workspace.country.clone()),
        ("timezone", workspace.timezone.to_string()),
        ("standing", view.standing()),
        ("calls at once", view.concurrency_limit.to_string()),
        ("kept for inbound", view.inbound_reserve.to_string()),
        ("may call", view.countries.to_string()),
        ("voice clones", if view.voice_clones { "on" } else { "off" }.to_owned()),
        ("created", view.created_at.to_string()),
    ] {
        println!("{name:<18}{value}");
    }
}
