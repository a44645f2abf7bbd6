//! `callboard workspace add-member` and its like: who belongs to a workspace, and as what.
use super::commands::{password_from_stdin, print};
use crate::{
    access::{self, Author, members},
    error::CannotStart,
};
use entities::{Error, db::Db, membership, page::Page, tenant, user, values::Role};
use runtime::{clock::Clock, ids::Ids};
use serde_json::json;

pub async fn add(
    db: &Db,
    (ids, clock): (Ids, &Clock),
    (workspace, email): (&str, &str),
    role: Role,
    json: bool,
) -> Result<(), CannotStart> {
    let tenant = tenant::by_slug(&db.read, workspace).await?;
    let password = password_from_stdin()?;
    access::check_password(&password)?;
    let email = access::parse_email(email)?;
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
        print(&json!({ "workspace": workspace, "email": member.email, "role": role, "password_kept": kept }));
    } else {
        let password = if kept { "; the password stays as it was" } else { "" };
        println!("{} is a member of {workspace}{password}", member.email);
    }
    Ok(())
}

pub async fn set_role(
    db: &Db,
    by: &Author,
    (workspace, email): (&str, &str),
    role: Role,
    json: bool,
) -> Result<(), CannotStart> {
    let (tenant, member) = member_of(db, workspace, email).await?;
    let transaction = db.begin().await.map_err(Error::from)?;
    members::set_role(&transaction, by, &tenant, member.id, role).await?;
    transaction.commit().await.map_err(Error::from)?;
    if json {
        print(&json!({ "workspace": workspace, "email": member.email, "role": role }));
    } else {
        println!("{} is now {} of {workspace}", member.email, with_article(role));
    }
    Ok(())
}

pub async fn remove(db: &Db, by: &Author, (workspace, email): (&str, &str), json: bool) -> Result<(), CannotStart> {
    let (tenant, member) = member_of(db, workspace, email).await?;
    let transaction = db.begin().await.map_err(Error::from)?;
    members::remove(&transaction, by, &tenant, member.id).await?;
    transaction.commit().await.map_err(Error::from)?;
    if json {
        print(&json!({ "workspace": workspace, "email": member.email, "removed": true }));
    } else {
        println!(
            "{} is no longer a member of {workspace}. API keys stay: `callboard keys list --workspace {workspace}` shows them",
            member.email
        );
    }
    Ok(())
}

pub async fn list(db: &Db, workspace: &str, json: bool) -> Result<(), CannotStart> {
    let tenant = tenant::by_slug(&db.read, workspace).await?;
    let mut shown = Vec::new();
    for (member, role) in all_members(db, tenant.id).await? {
        if json {
            shown.push(json!({ "id": member.id, "email": member.email, "role": role }));
        } else {
            println!("{:<40}  {}", member.email, role.as_str());
        }
    }
    if json {
        print(&shown);
    }
    Ok(())
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
