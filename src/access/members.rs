//! Who belongs to a workspace, as what. Each change ends the member's dashboard sessions and is noted, in one transaction.
use super::Author;
use entities::{
    Error, Result,
    audit_log::Action,
    connection::Connection,
    ids::{TenantId, UserId},
    invitation, login, membership, tenant, user,
    values::Role,
};
use serde_json::json;

/// Lets a user in. `AlreadyExists`: is a member already.
pub async fn add(db: &Connection, by: &Author, tenant: &tenant::Model, user: &user::Model, role: Role) -> Result<()> {
    membership::lock(db, tenant.id).await?;
    by.still(db, tenant.id, Role::Owner).await?;
    if membership::role_of(db, tenant.id, user.id).await?.is_some() {
        return Err(Error::AlreadyExists { field: "email" });
    }
    let row = membership::Model {
        user_id: user.id,
        tenant_id: tenant.id,
        role,
    };
    membership::add(db, row).await?;
    by.note(
        db,
        tenant.id,
        Action::MemberAdded,
        &user.email,
        &[("role", json!(role))],
    )
    .await
}

/// Gives a member another role. The same one again changes nothing, and ends no session.
pub async fn set_role(
    db: &Connection,
    by: &Author,
    tenant: &tenant::Model,
    user: UserId,
    role: Role,
) -> Result<user::Model> {
    let (member, before) = find(db, by, tenant.id, user).await?;
    if role == before {
        return Ok(member);
    }
    let others = membership::other_owners(db, tenant.id, user).await?;
    check_an_owner_stays(before, Some(role), others)?;
    membership::set_role(db, tenant.id, user, role).await?;
    // Whoever may no longer let people in has let nobody in for later.
    invitation::void_of(db, tenant.id, user).await?;
    let ended = login::remove_of(db, user, None).await?;
    let details = [
        ("from", json!(before)),
        ("to", json!(role)),
        ("sessions_ended", json!(ended)),
    ];
    by.note(db, tenant.id, Action::RoleChanged, &member.email, &details)
        .await?;
    Ok(member)
}

/// Shows a member the door.
pub async fn remove(db: &Connection, by: &Author, tenant: &tenant::Model, user: UserId) -> Result<user::Model> {
    let (member, before) = find(db, by, tenant.id, user).await?;
    let others = membership::other_owners(db, tenant.id, user).await?;
    check_an_owner_stays(before, None, others)?;
    membership::remove(db, tenant.id, user).await?;
    invitation::void_of(db, tenant.id, user).await?;
    let ended = login::remove_of(db, user, None).await?;
    let details = [("role", json!(before)), ("sessions_ended", json!(ended))];
    by.note(db, tenant.id, Action::MemberRemoved, &member.email, &details)
        .await?;
    Ok(member)
}

/// The member as it stays until the transaction's end.
async fn find(db: &Connection, by: &Author, tenant: TenantId, user: UserId) -> Result<(user::Model, Role)> {
    // Two owners who remove each other at one moment: the second one looks after the first is done.
    membership::lock(db, tenant).await?;
    by.still(db, tenant, Role::Owner).await?;
    let no_such = || Error::NotFound("member");
    let role = membership::role_of(db, tenant, user).await?.ok_or_else(no_such)?;
    Ok((user::load(db, user).await?, role))
}

/// A workspace never loses its last owner: nobody could let another one in.
fn check_an_owner_stays(before: Role, after: Option<Role>, other_owners: u64) -> Result<()> {
    if before != Role::Owner || after == Some(Role::Owner) || other_owners > 0 {
        return Ok(());
    }
    Err(Error::InvalidState {
        kind: "owner",
        state: "last",
        command: if after.is_some() {
            "get another role"
        } else {
            "be removed"
        },
        hint: "make another member an owner first",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_owner_stays() {
        use Role::{Admin, Owner, Viewer};
        for (before, after, other_owners, allowed) in [
            (Owner, None, 0, false),
            (Owner, Some(Admin), 0, false),
            (Owner, Some(Viewer), 0, false),
            (Owner, Some(Owner), 0, true),
            (Owner, None, 1, true),
            (Owner, Some(Viewer), 1, true),
            (Admin, None, 0, true),
            (Viewer, Some(Admin), 0, true),
        ] {
            let checked = check_an_owner_stays(before, after, other_owners);
            assert_eq!(
                checked.is_ok(),
                allowed,
                "{before:?} to {after:?} with {other_owners} others"
            );
        }
        let refused = check_an_owner_stays(Owner, None, 0).unwrap_err().to_string();
        assert_eq!(
            refused,
            "a last owner cannot be removed: make another member an owner first"
        );
    }
}
