//! `callboard workspace`: workspaces and who belongs to them. Works beside a running `serve`, which looks at the same rows.
use super::{
    commands::{open, password_from_stdin, print, write},
    numbers,
};
use crate::{
    access::{self, Author, DEFAULT_CONCURRENCY, NewWorkspace, members},
    error::CannotStart,
    http::views::WorkspaceView,
};
use clap::Subcommand;
use entities::{
    Error,
    db::Db,
    membership,
    page::Page,
    tenant, user,
    values::{Role, Zone},
    verified_number,
};
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
        #[arg(long)]
        workspace: String,
        #[arg(long)]
        email: String,
        /// owner, admin or viewer
        #[arg(long, value_parser = parse_role)]
        role: Role,
        /// Read the password from standard input; an existing user keeps the old one
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// Give a member another role; the member's dashboard sessions end
    SetRole {
        #[arg(long)]
        workspace: String,
        #[arg(long)]
        email: String,
        /// owner, admin or viewer
        #[arg(long, value_parser = parse_role)]
        role: Role,
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
                let limit = DEFAULT_CONCURRENCY.min(settings.max_concurrency);
                let (tenant, owner, changes) = new.rows(&db.read, &ids, clock.now(), limit).await?;
                write(&db, changes).await?;
                if json {
                    print(
                        &json!({ "workspace": WorkspaceView::from(&tenant), "owner": { "id": owner.id, "email": owner.email } }),
                    );
                } else {
                    println!(
                        "Workspace {} is ready; {} signs in at {}/login",
                        tenant.slug,
                        owner.email,
                        settings.public_url()
                    );
                }
            }
            Workspace::AddMember {
                workspace,
                email,
                role,
                password_stdin: _,
            } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let password = password_from_stdin()?;
                access::check_password(&password)?;
                let email = access::parse_email(&email)?;
                let known = user::by_email(&db.read, &email).await?;
                let kept = known.is_some();
                let member = match known {
                    Some(user) => user,
                    None => user::Model {
                        id: ids.next(),
                        email,
                        password_hash: access::hash_password(&password)?,
                        created_at: clock.now(),
                    },
                };
                let by = Author::operator(ids, clock.now());
                let transaction = db.begin().await.map_err(Error::from)?;
                if !kept {
                    user::add(&transaction, &member).await?;
                }
                let added = members::add(&transaction, &by, &tenant, &member, role).await;
                added.map_err(|error| match error {
                    Error::AlreadyExists { .. } => CannotStart(format!(
                        "{} is already a member of {workspace}; change the role with `callboard workspace set-role`",
                        member.email
                    )),
                    other => other.into(),
                })?;
                transaction.commit().await.map_err(Error::from)?;
                if json {
                    print(
                        &json!({ "workspace": workspace, "email": member.email, "role": role, "password_kept": kept }),
                    );
                } else {
                    let password = if kept { "; the password stays as it was" } else { "" };
                    println!("{} is a member of {workspace}{password}", member.email);
                }
            }
            Workspace::SetRole { workspace, email, role } => {
                let (tenant, member) = member_of(&db, &workspace, &email).await?;
                let by = Author::operator(ids, clock.now());
                let transaction = db.begin().await.map_err(Error::from)?;
                members::set_role(&transaction, &by, &tenant, member.id, role).await?;
                transaction.commit().await.map_err(Error::from)?;
                if json {
                    print(&json!({ "workspace": workspace, "email": member.email, "role": role }));
                } else {
                    println!("{} is now {} of {workspace}", member.email, with_article(role));
                }
            }
            Workspace::RemoveMember { workspace, email } => {
                let (tenant, member) = member_of(&db, &workspace, &email).await?;
                let by = Author::operator(ids, clock.now());
                let transaction = db.begin().await.map_err(Error::from)?;
                members::remove(&transaction, &by, &tenant, member.id).await?;
                transaction.commit().await.map_err(Error::from)?;
                if json {
                    print(&json!({ "workspace": workspace, "email": member.email, "removed": true }));
                } else {
                    println!(
                        "{} is no longer a member of {workspace}. API keys stay: `callboard keys list --workspace {workspace}` shows them",
                        member.email
                    );
                }
            }
            Workspace::Members { workspace } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let mut shown = Vec::new();
                for (member, role) in all_members(&db, tenant.id).await? {
                    if json {
                        shown.push(json!({ "id": member.id, "email": member.email, "role": role }));
                    } else {
                        println!("{:<40}  {}", member.email, role.as_str());
                    }
                }
                if json {
                    print(&shown);
                }
            }
            Workspace::List => {
                let tenants = tenant::all(&db.read).await?;
                if json {
                    print(&tenants.iter().map(WorkspaceView::from).collect::<Vec<_>>());
                } else {
                    tenants
                        .iter()
                        .for_each(|tenant| println!("{:<24}  {}", tenant.slug, tenant.name));
                }
            }
            Workspace::VerifyNumber { workspace, number } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let number = numbers::parse(&tenant, &number)?;
                let row = verified_number::Model::vouched(ids.next(), tenant.id, number.clone(), clock.now());
                let transaction = db.begin().await.map_err(Error::from)?;
                verified_number::add(&transaction, row).await?;
                transaction.commit().await.map_err(Error::from)?;
                if json {
                    print(&json!({ "phone_number": number }));
                } else {
                    println!("Test keys of {workspace} may call {number}");
                }
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
            Workspace::ReleaseNumber { workspace, number } => {
                let tenant = tenant::by_slug(&db.read, &workspace).await?;
                let number = numbers::parse(&tenant, &number)?;
                let released = numbers::release(&db, &tenant, &number).await?;
                if json {
                    print(&json!({ "phone_number": number, "workspace": workspace, "released": released }));
                } else if released {
                    println!("{number} is no longer claimed for live use by {workspace}");
                } else {
                    println!("{workspace} has not claimed {number}");
                }
            }
        }
        db.close().await;
        Ok(())
    }
}

/// Somebody in a workspace, by the address.
async fn member_of(db: &Db, workspace: &str, email: &str) -> Result<(tenant::Model, user::Model), CannotStart> {
    let tenant = tenant::by_slug(&db.read, workspace).await?;
    let email = access::parse_email(email)?;
    let no_such = || CannotStart(format!("{email} is not a member of {workspace}"));
    let user = user::by_email(&db.read, &email).await?.ok_or_else(no_such)?;
    let role = membership::role_of(&db.read, tenant.id, user.id).await?;
    role.map(|_| (tenant, user)).ok_or_else(no_such)
}

async fn all_members(db: &Db, tenant: entities::ids::TenantId) -> Result<Vec<(user::Model, Role)>, Error> {
    let mut members = Vec::new();
    let mut page = Page {
        limit: 100,
        newest_first: false,
        ..Page::default()
    };
    loop {
        let listed = membership::list(&db.read, tenant, page).await?;
        page.after = listed.rows.last().map(|(user, _)| user.id.0);
        members.extend(listed.rows);
        if !listed.has_more {
            return Ok(members);
        }
    }
}

fn with_article(role: Role) -> &'static str {
    match role {
        Role::Viewer => "a viewer",
        Role::Admin => "an admin",
        Role::Owner => "an owner",
    }
}
