//! `callboard workspace`: workspaces and who belongs to them. Works beside a running `serve`, which looks at the same rows.
use super::{
    commands::{open, password_from_stdin, print, write},
    identity, members, numbers, retention,
};
use crate::{
    access::{Author, DEFAULT_CONCURRENCY, NewWorkspace},
    error::CannotStart,
    http::views::WorkspaceView,
    settings::Settings,
};
use clap::{Args, Subcommand};
use entities::{
    Error,
    db::Db,
    tenant,
    values::{Moment, Role, Zone},
    verified_number,
};
use runtime::ids::Ids;
use serde_json::json;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum Workspace {
    /// Create a workspace with its owner
    Create {
        #[arg(long)]
        slug: String,
        #[arg(long)]
        name: String,
        #[arg(long)]
        owner_email: String,
        /// Read the owner's password from standard input
        #[arg(long, required = true)]
        owner_password_stdin: bool,
        /// How numbers without + are read: ISO 3166-1 alpha-2
        #[arg(long, default_value = "US")]
        country: String,
        /// The time zone for calls whose own is unknown, such as Europe/Berlin; default: the country's
        #[arg(long)]
        timezone: Option<Zone>,
    },
    /// Add a member to a workspace: a viewer reads, an admin also changes, an owner also manages members
    AddMember {
        #[command(flatten)]
        member: MemberRole,
        /// Read the password from standard input; an existing user keeps the old one
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// Give a member another role; the member's dashboard sessions end
    SetRole {
        #[command(flatten)]
        member: MemberRole,
    },
    /// Remove a member from a workspace; their dashboard sessions end, API keys stay
    RemoveMember {
        #[arg(long)]
        workspace: String,
        #[arg(long)]
        email: String,
    },
    /// List a workspace's members
    Members {
        #[arg(long)]
        workspace: String,
    },
    /// List workspaces
    List,
    /// Show how long the workspace keeps what it has done, or change it: a number of days, or `forever`
    ///
    /// What is too old goes within the hour while `serve` runs, and does not come back.
    Retention {
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        asked: retention::Asked,
    },
    /// Show who the workspace is by law, or change it: what is said at the start of live calls and stands under its mails
    Identity {
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        asked: identity::Asked,
    },
    /// Let the workspace's test keys call a number outside the sandbox block
    VerifyNumber {
        #[arg(long)]
        workspace: String,
        #[arg(long)]
        number: String,
    },
    /// Claim a number for the workspace's live use, even if another workspace has it; no code undoes that
    ClaimNumber {
        #[arg(long)]
        workspace: String,
        #[arg(long)]
        number: String,
    },
    /// Release the workspace's claim to a number: no live use until it is verified or claimed again
    ReleaseNumber {
        #[arg(long)]
        workspace: String,
        #[arg(long)]
        number: String,
    },
}

// No doc comment here: it would stand in the help of both commands, in place of their own.
#[derive(Args)]
pub struct MemberRole {
    #[arg(long)]
    workspace: String,
    #[arg(long)]
    email: String,
    /// owner, admin or viewer
    #[arg(long, value_parser = parse_role)]
    role: Role,
}

fn parse_role(text: &str) -> Result<Role, String> {
    serde_json::from_value(json!(text)).map_err(|_| format!("`{text}` is not a role: use owner, admin or viewer"))
}

impl Workspace {
    pub async fn run(self, config: Option<PathBuf>, json: bool) -> Result<(), CannotStart> {
        let (settings, db, clock, ids) = open(config).await?;
        match self {
            Workspace::Create {
                slug,
                name,
                owner_email,
                owner_password_stdin: _,
                country,
                timezone,
            } => {
                let password = password_from_stdin()?;
                let mut new = NewWorkspace::parse(&slug, &name, &country, &owner_email, &password)?;
                new.timezone = timezone.unwrap_or(new.timezone);
                create(&settings, &db, new, (&ids, clock.now()), json).await?;
            }
            Workspace::AddMember {
                member,
                password_stdin: _,
            } => {
                members::add(
                    &db,
                    (ids, &clock),
                    (&member.workspace, &member.email),
                    member.role,
                    json,
                )
                .await?
            }
            Workspace::SetRole { member } => {
                members::set_role(
                    &db,
                    &Author::operator(ids, clock.now()),
                    (&member.workspace, &member.email),
                    member.role,
                    json,
                )
                .await?;
            }
            Workspace::RemoveMember { workspace, email } => {
                members::remove(&db, &Author::operator(ids, clock.now()), (&workspace, &email), json).await?;
            }
            Workspace::Members { workspace } => members::list(&db, &workspace, json).await?,
            Workspace::List => list(&db, json).await?,
            Workspace::Retention { workspace, asked } => {
                let by = Author::operator(ids, clock.now());
                retention::run(&settings, &db, &by, (&workspace, asked), json).await?;
            }
            Workspace::Identity { workspace, asked } => {
                identity::run(&db, &Author::operator(ids, clock.now()), (&workspace, asked), json).await?;
            }
            Workspace::VerifyNumber { workspace, number } => {
                verify_number(&db, (&ids, clock.now()), (&workspace, &number), json).await?;
            }
            Workspace::ClaimNumber { workspace, number } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let number = numbers::parse(&tenant, &number)?;
                numbers::check_claimable(&settings, &number)?;
                let claimed = numbers::claim(&db, &ids, &tenant, number, clock.now()).await?;
                if json {
                    print(&claimed);
                } else {
                    println!("{}", claimed.sentence());
                }
            }
            Workspace::ReleaseNumber { workspace, number } => release_number(&db, (&workspace, &number), json).await?,
        }
        db.close().await;
        Ok(())
    }
}

async fn create(
    settings: &Settings,
    db: &Db,
    new: NewWorkspace,
    (ids, now): (&Ids, Moment),
    json: bool,
) -> Result<(), CannotStart> {
    let limit = DEFAULT_CONCURRENCY.min(settings.max_concurrency);
    let (tenant, owner, changes) = new.rows(&db.read, ids, now, limit).await?;
    write(db, changes).await?;
    if json {
        print(&json!({ "workspace": WorkspaceView::from(&tenant), "owner": { "id": owner.id, "email": owner.email } }));
    } else {
        println!(
            "Workspace {} is ready; {} signs in at {}/login",
            tenant.slug,
            owner.email,
            settings.public_url()
        );
    }
    Ok(())
}

async fn list(db: &Db, json: bool) -> Result<(), CannotStart> {
    let tenants = tenant::all(&db.read).await?;
    if json {
        print(&tenants.iter().map(WorkspaceView::from).collect::<Vec<_>>());
    } else {
        tenants
            .iter()
            .for_each(|tenant| println!("{:<24}  {}", tenant.slug, tenant.name));
    }
    Ok(())
}

async fn verify_number(
    db: &Db,
    (ids, now): (&Ids, Moment),
    (workspace, number): (&str, &str),
    json: bool,
) -> Result<(), CannotStart> {
    let tenant = tenant::by_slug(&db.read, workspace).await?;
    let number = numbers::parse(&tenant, number)?;
    let row = verified_number::Model::vouched(ids.next(), tenant.id, number.clone(), now);
    let transaction = db.begin().await.map_err(Error::from)?;
    verified_number::add(&transaction, row).await?;
    transaction.commit().await.map_err(Error::from)?;
    if json {
        print(&json!({ "phone_number": number }));
    } else {
        println!("Test keys of {workspace} may call {number}");
    }
    Ok(())
}

async fn release_number(db: &Db, (workspace, number): (&str, &str), json: bool) -> Result<(), CannotStart> {
    let tenant = tenant::by_slug(&db.read, workspace).await?;
    let number = numbers::parse(&tenant, number)?;
    let released = numbers::release(db, &tenant, &number).await?;
    if json {
        print(&json!({ "phone_number": number, "workspace": workspace, "released": released }));
    } else if released {
        println!("{number} is no longer claimed for live use by {workspace}");
    } else {
        println!("{workspace} has not claimed {number}");
    }
    Ok(())
}
