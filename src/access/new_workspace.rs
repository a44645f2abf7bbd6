//! A new workspace and its owner: what is checked of them, and the rows that they are.
use super::{check_password, hash_password, parse_email};
use entities::{
    Error, Result,
    changes::Changes,
    connection::Connection,
    membership, tenant, user,
    values::{Country, Moment, Role, Text, Zone},
};

pub fn check_slug(slug: &str) -> Result<()> {
    let bytes = slug.as_bytes();
    let fits = (2..=40).contains(&slug.len())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-');
    let edges = bytes.first().is_some_and(|byte| *byte != b'-') && bytes.last().is_some_and(|byte| *byte != b'-');
    if fits && edges {
        Ok(())
    } else {
        Err(Error::invalid(
            "slug",
            "must be 2 to 40 characters from a-z, 0-9 and -, and must not start or end with -",
        ))
    }
}

/// What a new workspace is made of; everything has been checked.
#[derive(Clone)]
pub struct NewWorkspace {
    pub slug: String,
    pub name: String,
    pub country: Country,
    pub timezone: Zone,
    pub email: String,
    pub password_hash: String,
}

/// Where most people of a country are that has several zones.
const MAIN_ZONES: [(&str, &str); 9] = [
    ("US", "America/New_York"),
    ("CA", "America/Toronto"),
    ("MX", "America/Mexico_City"),
    ("BR", "America/Sao_Paulo"),
    ("GB", "Europe/London"),
    ("ES", "Europe/Madrid"),
    ("PT", "Europe/Lisbon"),
    ("RU", "Europe/Moscow"),
    ("AU", "Australia/Sydney"),
];

/// The zone of a country, as far as it can be told.
pub fn zone_of(country: Country) -> Zone {
    let main = MAIN_ZONES.iter().find(|(name, _)| *name == country.to_string());
    let by_prefix = || {
        rules::zone::of_prefix(&country.calling_code()?)
            .first()
            .copied()
            .map(Zone::from)
    };
    main.and_then(|(_, zone)| zone.parse().ok())
        .or_else(by_prefix)
        .unwrap_or(Zone::NEW_YORK)
}

impl NewWorkspace {
    pub fn parse(slug: &str, name: &str, country: &str, email: &str, password: &str) -> Result<Self> {
        check_slug(slug)?;
        check_password(password)?;
        let name = Text::<1, 100>::parse(name)
            .map_err(|why| Error::invalid("name", why))?
            .into_string();
        let country: Country = country.parse().map_err(|why: String| Error::invalid("country", why))?;
        Ok(NewWorkspace {
            timezone: zone_of(country),
            slug: slug.to_owned(),
            name,
            country,
            email: parse_email(email)?,
            password_hash: hash_password(password)?,
        })
    }

    /// Whoever signs up is not a user yet: only the operator makes a workspace for one who is.
    pub async fn check_owner_is_new(&self, db: &Connection) -> Result<()> {
        match user::by_email(db, &self.email).await? {
            Some(_) => Err(Error::AlreadyExists { field: "email" }),
            None => Ok(()),
        }
    }

    /// The rows to write. An owner who is a user already keeps the password that is known.
    pub async fn rows(
        &self,
        db: &Connection,
        ids: &runtime::ids::Ids,
        now: Moment,
        limit: i32,
    ) -> Result<(tenant::Model, user::Model, Changes)> {
        if tenant::slug_is_taken(db, &self.slug).await? {
            return Err(Error::AlreadyExists { field: "slug" });
        }
        let mut changes = Changes::default();
        let tenant = tenant::Model {
            voice_clones: true,
            countries: None,
            id: ids.next(),
            slug: self.slug.clone(),
            name: self.name.clone(),
            country: self.country.to_string(),
            timezone: self.timezone,
            concurrency_limit: limit,
            inbound_reserve: 0,
            version: 1,
            created_at: now,
        };
        changes.tenants.push(tenant.clone());
        let owner = match user::by_email(db, &self.email).await? {
            Some(user) => user,
            None => {
                let user = user::Model {
                    id: ids.next(),
                    email: self.email.clone(),
                    password_hash: self.password_hash.clone(),
                    created_at: now,
                };
                changes.users.push(user.clone());
                user
            }
        };
        changes.memberships.push(membership::Model {
            user_id: owner.id,
            tenant_id: tenant.id,
            role: Role::Owner,
        });
        Ok((tenant, owner, changes))
    }
}

/// Calls at once of a new workspace, if the operator allows as many.
pub const DEFAULT_CONCURRENCY: i32 = 20;
