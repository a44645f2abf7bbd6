//! Access that the operator gives and takes back, beside a running `serve`.
use super::{Place, json_of, on, stderr, terminate};
use crate::world::{Backend, client};
use serde_json::{Value, json};
use std::process::Output;

const FIRST: &str = "correct horse battery";

impl Place {
    /// Signs in; answers the status and the cookie.
    async fn sign_in(&self, email: &str, password: &str) -> (u16, String) {
        let url = format!("http://{}/v1/_internal/login", self.bind);
        let request = client()
            .post(url)
            .json(&json!({ "email": email, "password": password }));
        let answer = request.send().await.unwrap();
        let cookie = answer
            .headers()
            .get("set-cookie")
            .map(|cookie| cookie.to_str().unwrap());
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).unwrap_or_default();
        (answer.status().as_u16(), cookie.to_owned())
    }

    async fn who(&self, cookie: &str) -> u16 {
        let url = format!("http://{}/v1/_internal/me", self.bind);
        let answer = client().get(url).header("Cookie", cookie).send().await.unwrap();
        answer.status().as_u16()
    }
}

fn given_and_taken_back(backend: Backend) {
    on(backend, async |place: Place| {
        let key = place.workspace();
        let mut serving = place.serve(&[]);
        let (status, stolen) = place.sign_in("a@b.co", FIRST).await;
        assert_eq!((status, place.who(&stolen).await), (200, 200));

        let unknown = place.run_with(
            "another password\n",
            &["user", "set-password", "--email", "x@b.co", "--password-stdin"],
        );
        assert!(!unknown.status.success() && stderr(&unknown).contains("no user has the address x@b.co"));
        let short = place.run_with(
            "short\n",
            &["user", "set-password", "--email", "a@b.co", "--password-stdin"],
        );
        assert!(
            !short.status.success() && stderr(&short).contains("12 characters"),
            "{}",
            stderr(&short)
        );
        assert_eq!(place.who(&stolen).await, 200, "what is refused changes nothing");
        let set = place.run_with(
            "another password\n",
            &[
                "--json",
                "user",
                "set-password",
                "--email",
                "A@b.co",
                "--password-stdin",
            ],
        );
        assert_eq!(
            json_of(&set),
            json!({ "email": "a@b.co", "sessions_ended": 1 }),
            "{}",
            stderr(&set)
        );
        assert_eq!(place.who(&stolen).await, 401, "in the running service, at once");
        assert_eq!(place.sign_in("a@b.co", FIRST).await.0, 401);
        assert_eq!(place.sign_in("a@b.co", "another password").await.0, 200);

        let add = [
            "workspace",
            "add-member",
            "--workspace",
            "acme",
            "--email",
            "c@b.co",
            "--role",
            "owner",
            "--password-stdin",
        ];
        assert!(place.run_with("a third password\n", &add).status.success());
        let again = place.run_with("a third password\n", &add);
        assert!(
            !again.status.success() && stderr(&again).contains("is already a member of acme"),
            "{}",
            stderr(&again)
        );
        let (_, theirs) = place.sign_in("c@b.co", "a third password").await;
        let set_role = |email: &str, role: &str| {
            place.run(&[
                "--json",
                "workspace",
                "set-role",
                "--workspace",
                "acme",
                "--email",
                email,
                "--role",
                role,
            ])
        };
        assert!(set_role("c@b.co", "admin").status.success());
        assert_eq!(place.who(&theirs).await, 401, "another role: sign in again");
        let last = set_role("a@b.co", "viewer");
        assert!(
            !last.status.success() && stderr(&last).contains("make another member an owner first"),
            "{}",
            stderr(&last)
        );
        let remove = |email: &str| place.run(&["workspace", "remove-member", "--workspace", "acme", "--email", email]);
        assert!(!remove("a@b.co").status.success(), "the last owner stays");
        assert!(stderr(&remove("x@b.co")).contains("x@b.co is not a member of acme"));
        let members = |listed: &Output| {
            json_of(listed)
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it["email"].clone())
                .collect::<Vec<_>>()
        };
        let list = ["--json", "workspace", "members", "--workspace", "acme"];
        assert_eq!(members(&place.run(&list)), ["a@b.co", "c@b.co"]);
        assert!(remove("c@b.co").status.success());
        assert_eq!(members(&place.run(&list)), ["a@b.co"]);
        assert_eq!(
            json_of(&place.run(&["--json", "user", "list"]))[1]["workspaces"],
            json!([])
        );

        let log = String::from_utf8(place.run(&["audit", "log", "--tenant", "acme"]).stdout).unwrap();
        let rows: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let said: Vec<_> = rows
            .iter()
            .map(|row| (row["action"].as_str().unwrap(), row["actor"].as_str().unwrap()))
            .collect();
        let expected = [
            "key_created",
            "password_set",
            "member_added",
            "role_changed",
            "member_removed",
        ];
        assert_eq!(said, expected.map(|action| (action, "operator")));
        assert!(
            ![&*key, FIRST, "another password"]
                .iter()
                .any(|secret| log.contains(secret))
        );
        terminate(&mut serving);
    });
}

#[test]
fn access_is_given_and_taken_back_on_sqlite() {
    given_and_taken_back(Backend::Sqlite);
}
#[test]
fn access_is_given_and_taken_back_on_postgres() {
    given_and_taken_back(Backend::Postgres);
}
