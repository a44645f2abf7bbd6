//! The table of tools. What is not here cannot be asked for.
use super::{
    api::Method::{self, Get, Post},
    arguments::*,
    tool::{
        Argument,
        Kind::{Choice, Id, Integer, Text},
        Part,
        Place::{QueryAs, Shown},
        Shape, Tool,
    },
};
use entities::values::Scope::{self, *};

pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Does a tool, or the protocol itself, ask this route of the API?
pub fn asks(method: &str, path: &str) -> bool {
    let of_tool = |tool: &Tool| {
        (tool.method.as_str() == method && tool.path == path) || (method == "GET" && tool.also == Some(path))
    };
    (method, path) == ("GET", "/v1/me") || TOOLS.iter().any(of_tool)
}

const fn tool(
    name: &'static str,
    title: &'static str,
    scope: Scope,
    (method, path): (Method, &'static str),
    description: &'static str,
    shape: Shape,
    arguments: &'static [Argument],
) -> Tool {
    Tool {
        name,
        title,
        description,
        scope: Some(scope),
        method,
        path,
        also: None,
        arguments,
        shape,
        is_untrusted: true,
    }
}

/// What is the workspace's own: no stranger has had a say in it.
const fn own(tool: Tool) -> Tool {
    Tool {
        is_untrusted: false,
        ..tool
    }
}

pub static TOOLS: &[Tool] = &[
    Tool {
        scope: None,
        ..own(tool(
            "get_workspace",
            "Workspace and key",
            SessionsRead,
            (Get, "/v1/me"),
            "Which workspace this is, its country and time zone, whether the key is for test or live, and its scopes.",
            Shape::Object,
            &[],
        ))
    },
    own(tool(
        "list_agents",
        "List agents",
        AgentsRead,
        (Get, "/v1/agents"),
        "List the agents: who speaks in calls. Each comes with its prompt, brain, questions and dispositions.",
        Shape::List,
        &[
            arg("name", Text(200), "How its name begins, in any case."),
            LIMIT,
            CURSOR,
            ORDER,
        ],
    )),
    own(tool(
        "get_agent",
        "Get an agent",
        AgentsRead,
        (Get, "/v1/agents/{id}"),
        "Get an agent as it is now: prompt, brain, voice, functions, questions, dispositions.",
        Shape::Object,
        &[id("id", "The agent's id.")],
    )),
    tool(
        "search_calls",
        "Search calls",
        SessionsRead,
        (Get, "/v1/sessions"),
        "Search calls (sessions), by number, person, campaign, agent, outcome or time. Each comes with its status, how it ended, \
         how long it took, what it cost, and its disposition; what was said is in `get_call_transcript`.",
        Shape::List,
        &[
            NUMBER,
            EMAIL,
            arg("status", Choice(&CALLS), "How it stands, or how it ended."),
            arg("direction", Choice(&["outbound", "inbound"]), "Who called whom."),
            at(
                QueryAs("type"),
                arg("kind", Choice(&["phone", "webrtc"]), "By telephone, or in a browser."),
            ),
            arg(
                "disposition_code",
                Text(64),
                "How the talk went, by one of the agent's codes.",
            ),
            AGENT,
            CAMPAIGN,
            arg("contact_id", Id, "Only with this contact of a campaign."),
            arg("client_reference_id", Text(200), "Your own reference."),
            AFTER,
            BEFORE,
            LIMIT,
            CURSOR,
            ORDER,
        ],
    ),
    tool(
        "get_call",
        "Get a call",
        SessionsRead,
        (Get, "/v1/sessions/{id}"),
        "Get one call: who, when, how it ended, what it cost, how it sounded, its variables and its disposition.",
        Shape::Object,
        &[A_CALL],
    ),
    tool(
        "get_call_transcript",
        "Read what was said",
        SessionsRead,
        (Get, "/v1/sessions/{id}/transcript.json"),
        "Read what was said in a call, turn by turn, with the functions that were called. `turns_total` says how many turns there \
         are; go on with `first_turn` = `next_first_turn`.",
        Shape::Part(Part::TURNS),
        &[
            A_CALL,
            at(
                Shown,
                arg(
                    "first_turn",
                    Integer(0, 10_000, 0),
                    "Where to begin; the first one is 0.",
                ),
            ),
            at(Shown, arg("max_turns", Integer(1, 500, 100), "How many turns at most.")),
        ],
    ),
    Tool {
        also: Some("/v1/sessions/{id}/answers"),
        ..tool(
            "get_call_evaluation",
            "How a call went",
            SessionsRead,
            (Get, "/v1/sessions/{id}"),
            "How a call went: its disposition with the reason, who decided it (agent, rules, a model or a person), and what was \
             answered to the agent's questions.",
            Shape::Evaluation,
            &[A_CALL],
        )
    },
    tool(
        "get_call_timeline",
        "What happened in a call",
        SessionsRead,
        (Get, "/v1/sessions/{id}/timeline"),
        "Everything that happened in a call, in order: ringing, answer, turns, functions, transfers, errors. To find out why a \
         call went wrong. `entries_total` says how many entries there are; go on with `first_entry` = `next_first_entry`.",
        Shape::Part(Part::ENTRIES),
        &[
            A_CALL,
            at(
                Shown,
                arg(
                    "first_entry",
                    Integer(0, 100_000, 0),
                    "Where to begin; the first one is 0.",
                ),
            ),
            at(
                Shown,
                arg("max_entries", Integer(1, 500, 200), "How many entries at most."),
            ),
        ],
    ),
    own(tool(
        "get_call_statistics",
        "Calls in numbers",
        SessionsRead,
        (Get, "/v1/sessions/stats"),
        "How many calls there were and how they ended, by the hour or the day in which they began, with the answer rate.",
        Shape::Object,
        &[arg("period", Choice(&["24h", "30d"]), "The last 24 hours, or 30 days.")],
    )),
    own(tool(
        "list_campaigns",
        "List campaigns",
        CampaignsRead,
        (Get, "/v1/campaigns"),
        "List campaigns: lists of contacts that an agent works through by telephone, SMS or e-mail.",
        Shape::List,
        &[
            arg(
                "status",
                Choice(&["draft", "running", "paused", "completed"]),
                "Only in this status.",
            ),
            AFTER,
            BEFORE,
            LIMIT,
            CURSOR,
            ORDER,
        ],
    )),
    own(tool(
        "get_campaign",
        "Get a campaign",
        CampaignsRead,
        (Get, "/v1/campaigns/{id}"),
        "Get a campaign with its settings and its counts of contacts by status.",
        Shape::Object,
        &[A_CAMPAIGN],
    )),
    own(tool(
        "get_campaign_statistics",
        "How a campaign gets on",
        CampaignsRead,
        (Get, "/v1/campaigns/{id}/stats"),
        "How a campaign gets on: counts, pace, answer rate by hour, what holds it up, and when it will be done.",
        Shape::Object,
        &[A_CAMPAIGN],
    )),
    tool(
        "get_campaign_report",
        "A campaign's report",
        CampaignsRead,
        (Get, "/v1/campaigns/{id}/report.csv"),
        "The report of a campaign as CSV: its contacts, each with its last call. Only how it begins is shown: for all of a long \
         one use `list_campaign_contacts`.",
        Shape::Csv,
        &[A_CAMPAIGN],
    ),
    tool(
        "list_campaign_contacts",
        "List a campaign's contacts",
        CampaignsRead,
        (Get, "/v1/campaigns/{id}/contacts"),
        "List the contacts of a campaign, with their status, attempts, and why they were skipped.",
        Shape::List,
        &[
            A_CAMPAIGN,
            arg("status", Choice(&CONTACTS), "Only in this status."),
            NUMBER,
            EMAIL,
            arg("external_id", Text(200), "Your own id of a contact."),
            LIMIT,
            CURSOR,
            ORDER,
        ],
    ),
    tool(
        "find_contacts",
        "Find contacts",
        CampaignsRead,
        (Get, "/v1/contacts"),
        "Find a person in all campaigns, newest campaign first. Give exactly one of phone_number, email, external_id and name.",
        Shape::List,
        &[
            NUMBER,
            EMAIL,
            arg("external_id", Text(200), "Your own id of a contact."),
            arg("name", Text(200), "How the name begins, in any case."),
            LIMIT,
        ],
    ),
    tool(
        "explain_contact_eligibility",
        "May a contact be called?",
        CampaignsRead,
        (Get, "/v1/campaigns/{id}/contacts/{contact_id}/eligibility"),
        "Whether a contact may be called now: every rule (hours, caps, do-not-call list, attempts) with its verdict.",
        Shape::Object,
        &[A_CAMPAIGN, id("contact_id", "The contact's id.")],
    ),
    tool(
        "preflight_campaign",
        "Preflight a campaign",
        CampaignsWrite,
        (Post, "/v1/campaigns/{id}/preflight"),
        "Look through a campaign's whole list without calling anybody: who can be called, who would be skipped and why, time \
         zones, cost, the expected finish. Nothing is changed or started. It may take a minute for a long list.",
        Shape::Object,
        &[A_CAMPAIGN],
    ),
    tool(
        "check_do_not_call",
        "Is somebody on the do-not-call list?",
        CampaignsRead,
        (Get, "/v1/dnc/check"),
        "Whether a number or an e-mail address is on the do-not-call list, since when and why. Give one of the two.",
        Shape::Object,
        &[NUMBER, EMAIL],
    ),
    own(tool(
        "check_compliance",
        "What would the law say?",
        CampaignsRead,
        (Get, "/v1/compliance/check"),
        "What the law would say of a call or a message to a number, an address or a place, on any date: every rule with its source, its \
         verdict and who must mend what, the hours there, and when the law changes next. Nothing is stored or called. Not legal advice.",
        Shape::Object,
        &[
            TO, REGION, AT, CHANNEL, PURPOSE, AUDIENCE, VERTICAL, SELLER, LANGUAGE, CONSENT,
        ],
    )),
    tool(
        "list_consents",
        "List consents",
        CampaignsRead,
        (Get, "/v1/consents"),
        "List who agreed to be called or written to, by whom, for what and until when, and what was taken back. Of one person with \
         their number or address.",
        Shape::List,
        &[
            NUMBER,
            EMAIL,
            arg("seller", Text(200), "Only those given to this seller."),
            arg("tier", Choice(&TIERS), "Only those of this strength."),
            arg(
                "status",
                Choice(&["valid", "expired", "revoked"]),
                "Only those that stand, have expired, or were revoked.",
            ),
            AFTER,
            BEFORE,
            LIMIT,
            CURSOR,
            ORDER,
        ],
    ),
    tool(
        "list_events",
        "List events",
        WebhooksRead,
        (Get, "/v1/events"),
        "List what has happened: the events that webhooks are sent, with their data.",
        Shape::List,
        &[
            at(
                QueryAs("type"),
                arg("event_type", Text(100), "Only of this type, such as session.ended."),
            ),
            arg(
                "subject_id",
                Id,
                "Only about this call, contact, campaign, message or endpoint.",
            ),
            AFTER,
            BEFORE,
            LIMIT,
            CURSOR,
            ORDER,
        ],
    ),
    own(tool(
        "list_webhook_endpoints",
        "List webhook endpoints",
        WebhooksRead,
        (Get, "/v1/webhook_endpoints"),
        "List the receivers of events: their address, event types, and whether they are suspended.",
        Shape::List,
        &[LIMIT, CURSOR, ORDER],
    )),
    tool(
        "list_webhook_deliveries",
        "List an endpoint's deliveries",
        WebhooksRead,
        (Get, "/v1/webhook_endpoints/{id}/deliveries"),
        "List deliveries to an endpoint with their attempts: status, duration, the receiver's answer. `failed`, `retrying` and \
         `held` ones show what is wrong with a receiver.",
        Shape::List,
        &[
            id("id", "The endpoint's id."),
            arg(
                "status",
                Choice(&["pending", "retrying", "succeeded", "failed", "held", "cancelled"]),
                "Only in this status.",
            ),
            arg("event_type", Text(100), "Only of events of this type."),
            AFTER,
            BEFORE,
            LIMIT,
            CURSOR,
            ORDER,
        ],
    ),
    own(tool(
        "get_webhook_statistics",
        "How an endpoint does",
        WebhooksRead,
        (Get, "/v1/webhook_endpoints/{id}/stats"),
        "How deliveries to an endpoint go: attempts by outcome, durations, what is waiting.",
        Shape::Object,
        &[id("id", "The endpoint's id.")],
    )),
    own(tool(
        "get_credits",
        "Get the credits",
        CreditsRead,
        (Get, "/v1/credits"),
        "The workspace's credits in this environment, in US cents, and what of them is set aside for calls.",
        Shape::Object,
        &[],
    )),
    own(tool(
        "get_concurrency",
        "Calls at once",
        ConcurrencyRead,
        (Get, "/v1/concurrency"),
        "How many calls may run at once, and how many do.",
        Shape::Object,
        &[],
    )),
    tool(
        "search_sms",
        "Search SMS",
        SmsSend,
        (Get, "/v1/sms_messages"),
        "Search SMS that were sent or came in, with their text and what became of them.",
        Shape::List,
        &[
            arg(
                "status",
                Choice(&[
                    "scheduled",
                    "queued",
                    "sent",
                    "delivered",
                    "undelivered",
                    "failed",
                    "canceled",
                    "received",
                ]),
                "Only in this status.",
            ),
            arg("to_number", Text(32), "To whom, in E.164."),
            arg("from_number", Text(32), "From whom, in E.164."),
            arg("direction", Choice(&["outbound", "inbound"]), "Sent, or come in."),
            AFTER,
            BEFORE,
            LIMIT,
            CURSOR,
            ORDER,
        ],
    ),
    tool(
        "search_emails",
        "Search e-mails",
        EmailSend,
        (Get, "/v1/email_messages"),
        "Search e-mails to contacts, with their subject and what became of them. Their text is not shown.",
        Shape::List,
        &[
            arg(
                "status",
                Choice(&[
                    "scheduled",
                    "queued",
                    "deferred",
                    "sent",
                    "bounced",
                    "failed",
                    "canceled",
                ]),
                "Only in this status.",
            ),
            arg("to", Text(254), "To this address."),
            arg(
                "kind",
                Choice(&["transactional", "marketing"]),
                "What the person asked for, or advertising.",
            ),
            AFTER,
            BEFORE,
            LIMIT,
            CURSOR,
            ORDER,
        ],
    ),
];
