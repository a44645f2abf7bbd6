//! The e-mail that tells owners that their copy of a register ages.
use super::{
    aging::{Stage, stale_at},
    known::known,
};
use crate::mail::Mail;
use entities::register::Model;

/// For filters.
const KIND: &str = "register.aging";

/// `None`: there is nothing to tell.
pub fn mail(register: &Model, stage: Stage) -> Option<Mail> {
    let name = &register.name;
    let (subject, what) = match stage {
        Stage::Fresh => return None,
        Stage::EndsSoon => (
            format!("The register {name} must be renewed within 3 days"),
            "will soon be too old. From the moment below on nobody is called or written to whom the law allows to be reached only after a \
             look into it",
        ),
        Stage::Stale => (
            format!("The register {name} is too old: calls that need it are held back"),
            "is too old. Nobody is called or written to whom the law allows to be reached only after a look into it",
        ),
    };
    let title = known(name).map_or(String::new(), |known| format!(" ({})", known.title));
    let how = match register.is_operators() {
        true => format!("callboard registers upload {name} FILE --fetched-at DAY"),
        false => format!("POST /v1/registers/{name}/files?fetched_at=DAY"),
    };
    let body = format!(
        "Your copy of the register {name}{title} {what}.\n\
         \n\
         Given out    {fetched_at}\n\
         Too old      {stale_at}\n\
         Version      {version}, with {numbers} numbers\n\
         \n\
         Get the latest file from its maker and upload it, with the day on which you got it:\n\
         {how}\n",
        fetched_at = register.fetched_at,
        stale_at = stale_at(register),
        version = register.version,
        numbers = register.numbers,
    );
    Some(Mail {
        kind: KIND,
        subject,
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::{super::aging::tests::register, *};
    use entities::{register::OPERATOR, values::Moment};

    #[test]
    fn it_says_which_how_old_and_what_to_do() {
        let row = register("us_dnc", 0);
        assert!(mail(&row, Stage::Fresh).is_none());
        let soon = mail(&row, Stage::EndsSoon).unwrap();
        assert!(soon.subject.contains("us_dnc") && soon.subject.contains("3 days"));
        let told = mail(&row, Stage::Stale).unwrap();
        for part in [
            "National Do Not Call Registry",
            "2026-11-01T00:00:00.000Z",
            "2026-12-02T00:00:00.000Z",
            "7, with 5 numbers",
            "POST /v1/registers/us_dnc/files",
        ] {
            assert!(told.body.contains(part), "{part}: {}", told.body);
        }
        let operators = Model {
            tenant_id: OPERATOR.0,
            ..row
        };
        let told = mail(&operators, Stage::Stale).unwrap();
        assert!(told.body.contains("callboard registers upload us_dnc"));
        assert_eq!(stale_at(&operators), Moment::parse("2026-12-02T00:00:00Z").unwrap());
    }
}
