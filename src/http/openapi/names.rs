//! What generated clients call operations: by what they do (`createAgent`).

/// Those that do not follow from method and path.
const OPERATIONS: &[(&str, &str, &str)] = &[
    ("GET", "/v1/me", "getCurrentKey"),
    ("POST", "/v1/functions/mcp_tools", "listMcpTools"),
    ("POST", "/v1/voices/clones", "cloneVoice"),
    ("POST", "/v1/voices/{id}/samples", "addVoiceSamples"),
    ("POST", "/v1/voices/{id}/consent", "proveVoiceConsent"),
    (
        "GET",
        "/v1/voices/{id}/consent_evidence",
        "downloadVoiceConsentEvidence",
    ),
    ("GET", "/v1/recordings/{id}/audio", "downloadRecording"),
    ("GET", "/v1/answers.csv", "exportAnswers"),
    ("POST", "/v1/campaigns/run", "runCampaign"),
    ("GET", "/v1/campaigns/{id}/report.csv", "exportCampaignReport"),
    ("POST", "/v1/campaigns/{id}/preflight", "preflightCampaign"),
    ("POST", "/v1/campaigns/{id}/contacts", "addCampaignContacts"),
    ("POST", "/v1/campaigns/{id}/contacts/import", "importCampaignContacts"),
    ("POST", "/v1/dnc/import", "importDncEntries"),
    ("GET", "/v1/dnc/check", "checkDnc"),
    ("POST", "/v1/consents/import", "importConsents"),
    ("PUT", "/v1/consents/{id}/evidence", "uploadConsentEvidence"),
    ("GET", "/v1/consents/{id}/evidence", "downloadConsentEvidence"),
    ("GET", "/v1/compliance/check", "checkCompliance"),
    ("GET", "/v1/compliance/identity", "getIdentity"),
    ("PATCH", "/v1/compliance/identity", "updateIdentity"),
    ("DELETE", "/v1/people", "erasePerson"),
    ("GET", "/v1/people/erasures", "listErasures"),
    ("GET", "/v1/people/file", "getPersonFile"),
    ("POST", "/v1/registers/{name}/files", "uploadRegisterFile"),
    ("GET", "/v1/compliance/attempts/{id}", "getComplianceAttempt"),
    ("POST", "/v1/compliance/exports", "createComplianceExport"),
    ("GET", "/v1/compliance/exports/{id}", "getComplianceExport"),
    ("DELETE", "/v1/compliance/exports/{id}", "deleteComplianceExport"),
    (
        "GET",
        "/v1/compliance/exports/{id}/manifest",
        "getComplianceExportManifest",
    ),
    (
        "GET",
        "/v1/compliance/exports/{id}/files/{part}",
        "downloadComplianceExportFile",
    ),
    ("GET", "/v1/sessions/stats", "getSessionStats"),
    ("GET", "/v1/sessions/{id}/stream", "streamSession"),
    ("POST", "/v1/sessions/{id}/say", "sayInSession"),
    ("POST", "/v1/sessions/{id}/dtmf", "sendSessionDtmf"),
    ("GET", "/v1/sessions/{id}/transcript.json", "getSessionTranscript"),
    ("GET", "/v1/events/stream", "streamEvents"),
    ("POST", "/v1/_sandbox/inbound_calls", "simulateInboundCall"),
    ("POST", "/v1/_sandbox/inbound_sms", "simulateInboundSms"),
    ("GET", "/r/{id}", "getRoomPage"),
    ("POST", "/r/{id}/viewed", "reportRoomViewed"),
    ("POST", "/r/{id}/whip", "joinRoom"),
    ("DELETE", "/r/{id}/whip/{participant_id}", "leaveRoom"),
    ("GET", "/u/{token}", "getUnsubscribePage"),
    ("POST", "/u/{token}", "unsubscribe"),
    ("POST", "/mcp", "sendMcpMessage"),
    ("GET", "/healthz", "getHealth"),
    ("GET", "/readyz", "getReadiness"),
    ("GET", "/metrics", "getMetrics"),
    ("GET", "/openapi.json", "getOpenApi"),
];

/// Collections whose members are not called by their name without an s.
const MEMBERS: &[(&str, &str)] = &[
    ("dnc", "DncEntry"),
    ("ledger", "LedgerEntry"),
    ("credits", "Credits"),
    ("concurrency", "Concurrency"),
];

pub(super) fn operation(method: &str, path: &str) -> String {
    if let Some((.., name)) = OPERATIONS.iter().find(|(of, at, _)| *of == method && *at == path) {
        return (*name).to_owned();
    }
    let parts: Vec<&str> = path
        .trim_start_matches("/v1/")
        .trim_start_matches('/')
        .split('/')
        .collect();
    // The console's own: by method and path, for it changes as the console does.
    if parts[0] == "_internal" {
        let mut path = parts[1..].join("/").replace("t/{slug}", "workspace");
        if path.ends_with('}') {
            path += "/one";
        }
        let named: String = path
            .split('/')
            .filter(|part| !part.starts_with('{'))
            .map(pascal)
            .collect();
        return format!("console{}{named}", pascal(&method.to_lowercase()));
    }
    let is_place = |part: &&str| part.starts_with('{');
    // Whose they are, from the outermost to the innermost, and what is left.
    let (mut owner, mut rest) = (String::new(), &parts[..]);
    while rest.len() > 2 && is_place(&rest[1]) {
        owner += &member(rest[0]);
        rest = &rest[2..];
    }
    match (method, rest) {
        ("GET", [all]) if is_single(all) || (!owner.is_empty() && !is_collection(all)) => {
            format!("get{owner}{}", pascal(all))
        }
        ("GET", [all]) => format!("list{owner}{}", members(all)),
        ("POST", [all]) if owner.is_empty() => format!("create{}", member(all)),
        ("PATCH", [one]) => format!("update{owner}{}", member(one)),
        ("GET", [all, _]) if is_place(&rest[1]) => format!("get{owner}{}", member(all)),
        ("PATCH", [all, _]) => format!("update{owner}{}", member(all)),
        ("DELETE", [all, _]) => format!("delete{owner}{}", member(all)),
        ("GET", [of, all]) => format!(
            "list{owner}{}{}",
            if is_single(of) { String::new() } else { member(of) },
            members(all)
        ),
        ("GET", [_, all, _]) => format!("get{owner}{}", member(all)),
        ("POST", [action]) => acted(action, &owner),
        ("POST", [_, all]) => format!("create{owner}{}", member(all)),
        _ => format!(
            "{}{}",
            method.to_lowercase(),
            parts.iter().map(|part| pascal(part)).collect::<String>()
        ),
    }
}

/// `rotate_secret` of an endpoint: `rotateWebhookEndpointSecret`.
fn acted(action: &str, owner: &str) -> String {
    match action.split_once('_') {
        Some((verb, rest)) => format!("{verb}{owner}{}", pascal(rest)),
        None => format!("{action}{owner}"),
    }
}

fn is_single(name: &str) -> bool {
    matches!(name, "me" | "credits" | "concurrency")
}

fn is_collection(name: &str) -> bool {
    name == "ledger" || name.ends_with('s') && name != "stats"
}

fn member(collection: &str) -> String {
    let known = MEMBERS.iter().find(|(name, _)| *name == collection);
    known.map_or_else(
        || pascal(collection.strip_suffix('s').unwrap_or(collection)),
        |(_, member)| (*member).to_owned(),
    )
}

fn members(collection: &str) -> String {
    match member(collection).strip_suffix('y') {
        Some(stem) if collection != "history" => format!("{stem}ies"),
        _ if collection.ends_with('s') => pascal(collection),
        _ => format!("{}s", member(collection)),
    }
}

pub(super) fn pascal(name: &str) -> String {
    let words = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_called_by_what_they_do() {
        for (method, path, name) in [
            ("POST", "/v1/agents", "createAgent"),
            ("GET", "/v1/agents", "listAgents"),
            ("GET", "/v1/agents/{id}", "getAgent"),
            ("PATCH", "/v1/agents/{id}", "updateAgent"),
            ("DELETE", "/v1/agents/{id}", "deleteAgent"),
            ("GET", "/v1/agents/{id}/versions", "listAgentVersions"),
            ("POST", "/v1/agents/{id}/duplicate", "duplicateAgent"),
            ("POST", "/v1/functions/{id}/rotate_secret", "rotateFunctionSecret"),
            ("GET", "/v1/numbers/{id}/stats", "getNumberStats"),
            ("POST", "/v1/dnc", "createDncEntry"),
            ("GET", "/v1/dnc", "listDncEntries"),
            ("DELETE", "/v1/dnc/{id}", "deleteDncEntry"),
            ("GET", "/v1/campaigns/{id}/contacts", "listCampaignContacts"),
            ("GET", "/v1/campaigns/{id}/contacts/{contact_id}", "getCampaignContact"),
            (
                "POST",
                "/v1/campaigns/{id}/contacts/{contact_id}/retry",
                "retryCampaignContact",
            ),
            (
                "GET",
                "/v1/campaigns/{id}/contacts/{contact_id}/eligibility",
                "getCampaignContactEligibility",
            ),
            ("GET", "/v1/credits", "getCredits"),
            ("PATCH", "/v1/credits", "updateCredits"),
            ("GET", "/v1/credits/ledger", "listLedgerEntries"),
            ("POST", "/v1/credits/topups", "createTopup"),
            ("GET", "/v1/credits/topups", "listTopups"),
            ("GET", "/v1/credits/topups/{id}", "getTopup"),
            (
                "GET",
                "/v1/webhook_endpoints/{id}/deliveries",
                "listWebhookEndpointDeliveries",
            ),
            (
                "POST",
                "/v1/webhook_endpoints/{id}/revoke_previous_secret",
                "revokeWebhookEndpointPreviousSecret",
            ),
            ("GET", "/v1/me", "getCurrentKey"),
            ("POST", "/v1/_internal/login", "consolePostLogin"),
            ("GET", "/v1/_internal/t/{slug}/api-keys", "consoleGetWorkspaceApiKeys"),
            (
                "GET",
                "/v1/_internal/t/{slug}/api-keys/{id}",
                "consoleGetWorkspaceApiKeysOne",
            ),
        ] {
            assert_eq!(operation(method, path), name, "{method} {path}");
        }
    }
}
