//! Every route: method, path, what it asks of its caller, who answers, and what it takes and gives.
//!
//! Access is part of the declaration, and the list is all there is: a route that is not here does not exist, and one
//! without access does not compile.
use super::{
    account, agents, answers, api_keys, call_stats,
    caller::Access::{self, *},
    campaigns,
    compliance::{self, check, identity, law_rules},
    concurrency, consents, contacts, credits, dnc, docs, email_messages, endpoint_deliveries, events, functions,
    imports, inbound_calls, invitations, landing, live_calls, login, mcp, mcp_tools, me, members, numbers,
    password_reset, patience, people, person_file, preflight, recordings, register_files, registers, report, retention,
    rooms, sessions, sip_trunks, sms_messages, system, topups, trunk_check, twilio, unsubscribe, verified_numbers,
    views, voices, webhook_endpoints, workspace,
};
use crate::{dashboard, mcp::tools, state::State};
use actix_web::{
    FromRequest, Handler, HttpRequest, HttpResponse, Responder, ResponseError,
    dev::Payload,
    http::{Method, header},
    middleware::from_fn,
    web::{self, Data, ServiceConfig},
};
use entities::values::{Role, Scope::*};
use futures_util::future::LocalBoxFuture;
use schemars::{Schema, SchemaGenerator};

pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub struct Route {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    /// One sentence for the docs.
    pub summary: &'static str,
    /// The status of success.
    pub status: u16,
    pub request: Option<SchemaOf>,
    pub response: Option<SchemaOf>,
    /// Why its answer may take longer than others': it waits for somebody outside, for as long as they may take.
    pub lasts: Option<&'static str>,
    answer: Answer,
}

/// Who answers a request. One type for all handlers: actix's own service would be compiled anew around each of them.
type Answer = fn(HttpRequest, Payload) -> LocalBoxFuture<'static, HttpResponse>;

fn answered<F, Args>(handler: F, request: HttpRequest, mut payload: Payload) -> LocalBoxFuture<'static, HttpResponse>
where
    F: Handler<Args>,
    F::Output: Responder,
    Args: FromRequest + 'static,
{
    Box::pin(async move {
        match Args::from_request(&request, &mut payload).await {
            Ok(args) => handler.call(args).await.respond_to(&request).map_into_boxed_body(),
            Err(error) => HttpResponse::from_error(error),
        }
    })
}

macro_rules! table { ($($method:ident $path:literal $access:expr, $handler:path, $summary:literal $(, lasts $why:literal)? $(, takes $request:ty)? $(, gives $response:ty)?, $status:literal;)*) => {
    /// All of them, by subject.
    pub fn all() -> Vec<Route> {
        vec![$(Route {
            method: Method::$method,
            path: $path,
            access: $access,
            summary: $summary,
            status: $status,
            request: None$(.or(Some((|generator: &mut SchemaGenerator| generator.subschema_for::<$request>()) as SchemaOf)))?,
            response: None$(.or(Some((|generator: &mut SchemaGenerator| generator.subschema_for::<$response>()) as SchemaOf)))?,
            lasts: None$(.or(Some($why)))?,
            answer: |request, payload| answered($handler, request, payload),
        }),*]
    }
} }

table! {
    GET "/v1/me" AnyKey, me::get, "What this key is: its workspace, scopes and expiry.", gives views::MeView, 200;

    POST "/v1/agents" Needs(AgentsWrite), agents::create, "Create an agent.", takes entities::agent::Definition, gives views::AgentView, 201;
    GET "/v1/agents" Needs(AgentsRead), agents::list, "List agents; filter by `name` (how it begins, in any case).", gives views::List<views::AgentView>, 200;
    GET "/v1/agents/{id}" Needs(AgentsRead), agents::get, "Get an agent.", gives views::AgentView, 200;
    PATCH "/v1/agents/{id}" Needs(AgentsWrite), agents::change, "Change an agent (JSON merge patch); makes a new version.", takes super::patch::Patch<entities::agent::Definition>, gives views::AgentView, 200;
    DELETE "/v1/agents/{id}" Needs(AgentsWrite), agents::delete, "Delete an agent that no number and no draft campaign uses. Running campaigns keep it as it was when they started.", 204;
    GET "/v1/agents/{id}/versions" Needs(AgentsRead), agents::versions, "List an agent's versions.", gives views::List<views::AgentVersionView>, 200;
    POST "/v1/agents/{id}/duplicate" Needs(AgentsWrite), agents::duplicate, "Create an agent with the same settings.", takes agents::Duplicate, gives views::AgentView, 201;
    POST "/v1/agents/{id}/simulate" Needs(AgentsWrite), agents::simulate, "Hold a conversation in text, with stubbed functions: nothing is stored, called or billed.", lasts "a talk of up to 120 s", takes agents::Simulate, gives views::SimulationView, 200;

    POST "/v1/functions" NeedsFresh(FunctionsWrite), functions::create, "Create a function that agents may call: a URL, or a tool of an MCP server, which is asked for it. The answer holds its `secret`, once.", takes functions::FunctionSettings, gives functions::FunctionView, 201;
    GET "/v1/functions" Needs(FunctionsRead), functions::list, "List functions.", gives views::List<functions::FunctionView>, 200;
    POST "/v1/functions/mcp_tools" Needs(FunctionsWrite), mcp_tools::list, "List the tools of an MCP server, to make functions of them. Nothing is kept.", takes mcp_tools::McpServer, gives mcp_tools::McpToolsView, 200;
    GET "/v1/functions/{id}" Needs(FunctionsRead), functions::get, "Get a function.", gives functions::FunctionView, 200;
    PATCH "/v1/functions/{id}" NeedsFresh(FunctionsWrite), functions::change, "Change a function (JSON merge patch; `parameters` is replaced as a whole). Live calls keep the old one. Null for an MCP tool's `description` or `parameters` takes the server's anew.", takes super::patch::Patch<functions::FunctionSettings>, gives functions::FunctionView, 200;
    DELETE "/v1/functions/{id}" Needs(FunctionsWrite), functions::delete, "Delete a function that no agent may call.", 204;
    POST "/v1/functions/{id}/rotate_secret" NeedsFresh(FunctionsWrite), functions::rotate_secret, "Replace the signing secret. The answer holds the new one, once.", gives functions::FunctionView, 200;
    POST "/v1/functions/{id}/test" Needs(FunctionsWrite), functions::test, "Call a function once, as in a talk; the result is in the answer.", lasts "a function of up to 120 s", takes functions::Test, gives functions::FunctionTestView, 200;

    GET "/v1/voices" Needs(VoicesRead), voices::list, "List voices: built-in ones and clones; filter by `type` and `status`.", gives views::List<voices::VoiceView>, 200;
    POST "/v1/voices/clones" Needs(VoicesWrite), voices::create, "Clone a voice from samples (`multipart/form-data`); finishes later.", takes voices::CloneForm, gives voices::VoiceView, 202;
    GET "/v1/voices/{id}" Needs(VoicesRead), voices::get, "Get a voice; a clone comes with its samples.", gives voices::VoiceView, 200;
    PATCH "/v1/voices/{id}" Needs(VoicesWrite), voices::change, "Rename a clone (JSON merge patch).", takes super::patch::Patch<voices::VoiceSettings>, gives voices::VoiceView, 200;
    DELETE "/v1/voices/{id}" Needs(VoicesWrite), voices::delete, "Delete a clone that no agent or campaign uses; its samples and the provider's copy are deleted too.", 204;
    POST "/v1/voices/{id}/preview" Needs(VoicesWrite), voices::preview, "Hear a voice say something, as `audio/wav`.", lasts "speech, here or at the provider", takes voices::Preview, 200;
    POST "/v1/voices/{id}/samples" Needs(VoicesWrite), voices::add_samples, "Add samples to a clone whose training failed (`multipart/form-data`).", takes voices::SamplesForm, gives voices::VoiceView, 200;
    POST "/v1/voices/{id}/consent" Needs(VoicesWrite), voices::prove, "Give what shows that the speaker of a clone has agreed to be cloned (`multipart/form-data`). Once: it is not replaced.", takes voices::ConsentForm, gives voices::VoiceView, 200;
    GET "/v1/voices/{id}/consent_evidence" Needs(VoicesRead), voices::evidence, "The file that shows that the speaker of a clone has agreed, as `application/octet-stream`.", 200;
    POST "/v1/voices/{id}/train" Needs(VoicesWrite), voices::train, "Train a clone again after a failure; finishes later.", gives voices::VoiceView, 202;

    POST "/v1/numbers" Needs(NumbersWrite), numbers::create, "Add a number and the agent that answers it. It works with test keys at once, and live once it is verified.", takes numbers::Create, gives numbers::NumberView, 201;
    GET "/v1/numbers" Needs(NumbersRead), numbers::list, "List numbers.", gives views::List<numbers::NumberView>, 200;
    GET "/v1/numbers/{id}" Needs(NumbersRead), numbers::get, "Get a number.", gives numbers::NumberView, 200;
    PATCH "/v1/numbers/{id}" Needs(NumbersWrite), numbers::change, "Change who answers a number (JSON merge patch).", takes super::patch::Patch<numbers::NumberSettings>, gives numbers::NumberView, 200;
    DELETE "/v1/numbers/{id}" Needs(NumbersWrite), numbers::delete, "Delete a number, and give up its claim for live use.", 204;
    GET "/v1/numbers/{id}/stats" Needs(NumbersRead), numbers::stats, "Calls to a number in the last 24 hours, and its answer rate.", gives numbers::NumberStatsView, 200;
    POST "/v1/sip_trunks" NeedsFresh(NumbersWrite), sip_trunks::create, "Add a SIP trunk.", takes entities::sip_trunk::Definition, gives views::TrunkView, 201;
    GET "/v1/sip_trunks" Needs(NumbersRead), sip_trunks::list, "List SIP trunks.", gives views::List<views::TrunkView>, 200;
    GET "/v1/sip_trunks/{id}" Needs(NumbersRead), sip_trunks::get, "Get a SIP trunk.", gives views::TrunkView, 200;
    PATCH "/v1/sip_trunks/{id}" NeedsFresh(NumbersWrite), sip_trunks::change, "Change a SIP trunk (JSON merge patch). Passwords that are left out are kept; a pause holds from the next dial on.", takes super::patch::Patch<entities::sip_trunk::Definition>, gives views::TrunkView, 200;
    DELETE "/v1/sip_trunks/{id}" Needs(NumbersWrite), sip_trunks::delete, "Delete a SIP trunk that no number uses.", 204;
    POST "/v1/sip_trunks/{id}/test" Needs(NumbersWrite), trunk_check::test, "Ask the peer of a SIP trunk whether it is there (SIP OPTIONS) and, if the trunk registers, whether it takes us for who we say we are (a REGISTER that changes nothing); what it said is in the answer.", lasts "the peer", gives trunk_check::TrunkTestView, 200;

    POST "/v1/verified_numbers" Needs(NumbersWrite), verified_numbers::create, "Make a code that proves whose number it is; a repeat for the same number makes a new code.", takes verified_numbers::Create, gives verified_numbers::VerifiedNumberView, 201;
    GET "/v1/verified_numbers" Needs(NumbersRead), verified_numbers::list, "List verified numbers and those waiting for their code; filter by `status`.", gives views::List<verified_numbers::VerifiedNumberView>, 200;
    GET "/v1/verified_numbers/{id}" Needs(NumbersRead), verified_numbers::get, "Get a verified number.", gives verified_numbers::VerifiedNumberView, 200;
    PATCH "/v1/verified_numbers/{id}" Needs(NumbersWrite), verified_numbers::change, "Change the label of a verified number (JSON merge patch).", takes verified_numbers::Change, gives verified_numbers::VerifiedNumberView, 200;
    DELETE "/v1/verified_numbers/{id}" Needs(NumbersWrite), verified_numbers::delete, "Delete a verified number: test keys can no longer call it.", 204;
    POST "/v1/verified_numbers/{id}/confirm" Needs(NumbersWrite), verified_numbers::confirm, "Confirm the code: if it is right, the number is verified and, if a live key asked for the code, yours for live use.", takes verified_numbers::Confirm, gives verified_numbers::VerifiedNumberView, 200;
    POST "/v1/_sandbox/inbound_calls" Needs(SessionsWrite), inbound_calls::call, "With a test key: simulate a call to one of your numbers.", takes inbound_calls::InboundCall, gives inbound_calls::InboundCallView, 201;

    GET "/v1/recordings" Needs(SessionsRead), recordings::list, "List recordings; filter by `session_id` and `status`.", gives views::List<recordings::RecordingView>, 200;
    GET "/v1/recordings/{id}" Needs(SessionsRead), recordings::get, "Get a recording, with a link to it that is valid for five minutes.", gives recordings::RecordingView, 200;
    GET "/v1/recordings/{id}/audio" NeedsOrLink(SessionsRead), recordings::audio, "The sound, a WAV file; takes `Range`. With a key, or by a link with `?expires=` and `?sig=`.", 200;
    DELETE "/v1/recordings/{id}" Needs(SessionsWrite), recordings::delete, "Erase a recording.", 204;

    GET "/v1/questions" Needs(QuestionsRead), answers::questions, "List the questions of agents, a page of agents at a time.", gives views::List<answers::QuestionView>, 200;
    GET "/v1/answers" Needs(QuestionsRead), answers::list, "List answers; filter by `session_id`, `agent_id`, `campaign_id` and `question_key`.", gives views::List<answers::AnswerView>, 200;
    GET "/v1/answers.csv" Needs(QuestionsRead), answers::export, "All answers as a CSV file; filter by `?session_id=`, `?agent_id=`, `?campaign_id=` and `?question_key=`.", 200;

    POST "/v1/campaigns" Needs(CampaignsWrite), campaigns::create, "Create a campaign as a draft.", takes entities::campaign::Plan, gives views::CampaignView, 201;
    GET "/v1/campaigns" Needs(CampaignsRead), campaigns::list, "List campaigns; filter by `status`.", gives views::List<views::CampaignView>, 200;
    POST "/v1/campaigns/run" Needs(CampaignsWrite), campaigns::run, "Create a campaign with its contacts and start it.", takes campaigns::Run, gives views::CampaignRunView, 201;
    GET "/v1/campaigns/{id}" Needs(CampaignsRead), campaigns::get, "Get a campaign with its counts.", gives views::CampaignView, 200;
    PATCH "/v1/campaigns/{id}" Needs(CampaignsWrite), campaigns::change, "Change a campaign (JSON merge patch). Changed rules apply from the next dial on; who calls is fixed once it has started.", takes super::patch::Patch<entities::campaign::Plan>, gives views::CampaignView, 200;
    DELETE "/v1/campaigns/{id}" Needs(CampaignsWrite), campaigns::delete, "Delete a draft or a completed campaign with its contacts. Its sessions and events stay.", 204;
    POST "/v1/campaigns/{id}/start" Needs(CampaignsWrite), campaigns::start, "Start a draft. If `schedule.starts_at` is in the future it is armed, and starts then.", gives views::CampaignView, 200;
    POST "/v1/campaigns/{id}/pause" Needs(CampaignsWrite), campaigns::pause, "Stop dispatching; calls in flight continue.", gives views::CampaignView, 200;
    POST "/v1/campaigns/{id}/resume" Needs(CampaignsWrite), campaigns::resume, "Resume after a pause.", gives views::CampaignView, 200;
    POST "/v1/campaigns/{id}/cancel" Needs(CampaignsWrite), campaigns::cancel, "Cancel the contacts not yet called; the campaign completes when the calls in flight have ended.", gives views::CampaignView, 200;
    GET "/v1/campaigns/{id}/stats" Needs(CampaignsRead), campaigns::stats, "Counts, pace, slots, answer rate by hour, what limits it, the expected finish.", gives views::CampaignStatsView, 200;
    GET "/v1/campaigns/{id}/report.csv" Needs(CampaignsRead), report::campaign, "All contacts with their last call, as a CSV file.", 200;
    POST "/v1/campaigns/{id}/duplicate" Needs(CampaignsWrite), campaigns::duplicate, "Create a draft with the same settings and no contacts.", takes campaigns::Duplicate, gives views::CampaignView, 201;
    POST "/v1/campaigns/{id}/preflight" Needs(CampaignsWrite), preflight::preflight, "What to expect: who can be called, who is skipped and why, time zones, the expected finish.", lasts "a list of any length", gives views::OutlookView, 200;
    POST "/v1/campaigns/{id}/contacts" Needs(CampaignsWrite), contacts::add, "Add up to 1,000 contacts. A number is in a campaign only once: duplicates are merged and counted.", takes contacts::Add, gives actors::contact::intake::Added, 200;
    POST "/v1/campaigns/{id}/contacts/import" Needs(CampaignsWrite), contacts::import, "Read contacts from a CSV file of up to 10 MiB (`Content-Type: text/csv`); finishes later.", gives super::imports::ImportView, 202;
    GET "/v1/campaigns/{id}/contacts" Needs(CampaignsRead), contacts::list, "List contacts; filter by `status`, `phone_number`, `email` and `external_id`.", gives views::List<views::ContactView>, 200;
    GET "/v1/campaigns/{id}/contacts/{contact_id}" Needs(CampaignsRead), contacts::get, "Get a contact.", gives views::ContactView, 200;
    PATCH "/v1/campaigns/{id}/contacts/{contact_id}" Needs(CampaignsWrite), contacts::change, "Change a contact that is waiting to be called (JSON merge patch).", takes super::patch::Patch<actors::contact::intake::Given>, gives views::ContactView, 200;
    DELETE "/v1/campaigns/{id}/contacts/{contact_id}" Needs(CampaignsWrite), contacts::delete, "Remove a contact that is `pending`; of any other erase who it was. Its campaign goes on to count it.", 204;
    POST "/v1/campaigns/{id}/contacts/{contact_id}/retry" Needs(CampaignsWrite), contacts::retry, "Call a failed, skipped or canceled contact once more.", gives views::ContactView, 200;
    GET "/v1/campaigns/{id}/contacts/{contact_id}/eligibility" Needs(CampaignsRead), contacts::eligibility, "Whether a contact may be called now: every rule with its verdict.", gives views::EligibilityView, 200;
    GET "/v1/contacts" Needs(CampaignsRead), contacts::find, "Find contacts in all campaigns by `phone_number`, `email`, `external_id` or `name` (how it begins, in any case), those of the newest campaign first.", gives views::List<views::ContactView>, 200;
    GET "/v1/contacts/{id}" Needs(CampaignsRead), contacts::of_id, "Get a contact, whichever campaign it is in.", gives views::ContactView, 200;
    GET "/v1/imports" Needs(CampaignsRead), imports::list, "List imports without their refused rows; filter by `kind`, `status` and `campaign_id`.", gives views::List<imports::ImportView>, 200;
    GET "/v1/imports/{id}" Needs(CampaignsRead), imports::get, "How far an import has got, and which rows were refused.", gives imports::ImportView, 200;

    POST "/v1/dnc" Needs(CampaignsWrite), dnc::create, "Put a number or an address on the do-not-call list; 200 if it is there already.", takes dnc::Create, gives dnc::DncView, 201;
    GET "/v1/dnc" Needs(CampaignsRead), dnc::list, "List the do-not-call list; filter by `phone_number`, `email` and `source`; `?removed=true` lists those that were taken off.", gives views::List<dnc::DncView>, 200;
    POST "/v1/dnc/import" Needs(CampaignsWrite), dnc::import, "Read entries from a CSV file of up to 10 MiB (`Content-Type: text/csv`); finishes later.", gives imports::ImportView, 202;
    GET "/v1/compliance/attempts" Needs(CampaignsRead), compliance::attempts::list, "List attempts to reach people as they are on record; filter by `phone_number`, `email`, `campaign_id` and `session_id` (or a message's id).", gives views::List<compliance::attempts::ComplianceAttemptView>, 200;
    GET "/v1/compliance/attempts/{id}" Needs(CampaignsRead), compliance::attempts::get, "Get an attempt as it is on record: the facts, every rule with its verdict and source, what came of it, and the hashes. The id is the session's or the message's.", gives compliance::attempts::AttemptProofView, 200;
    POST "/v1/compliance/exports" Needs(CampaignsWrite), compliance::exports::create, "Export the record of attempts, or what is on record about one person, one campaign or some time; finishes later.", takes compliance::exports::ExportCreate, gives compliance::exports::ComplianceExportView, 202;
    GET "/v1/compliance/exports" Needs(CampaignsRead), compliance::exports::list, "List exports of the record.", gives views::List<compliance::exports::ComplianceExportView>, 200;
    GET "/v1/compliance/exports/{id}" Needs(CampaignsRead), compliance::exports::get, "How far an export is, and its files.", gives compliance::exports::ComplianceExportView, 200;
    DELETE "/v1/compliance/exports/{id}" Needs(CampaignsWrite), compliance::exports::delete, "Delete an export with its files; one that is being made stops. The record stays, and can be exported again.", 204;
    GET "/v1/compliance/exports/{id}/manifest" Needs(CampaignsRead), compliance::exports::manifest, "The signed manifest of an export: its files with their digests, and where the chain stood.", gives compliance::exports::SignedManifestView, 200;
    GET "/v1/compliance/exports/{id}/files/{part}" Needs(CampaignsRead), compliance::exports::file, "Download a file of an export: JSON lines, or CSV.", 200;
    GET "/v1/compliance/heads" Needs(CampaignsRead), compliance::heads::list, "Where the record stood on each day, signed, the newest first; at most 100, `?before=` a day. And the public key.", gives compliance::heads::ComplianceHeadsView, 200;

    GET "/v1/dnc/check" Needs(CampaignsRead), dnc::check, "Is a number (`?phone_number=`) or an address (`?email=`) on the do-not-call list?", gives dnc::CheckView, 200;
    DELETE "/v1/dnc/{id}" Needs(CampaignsWrite), dnc::delete, "Take an entry off the do-not-call list. `?reason=` is kept. In the live environment whoever has opted out must have agreed anew: the consents that they have given later must cover all that the entry bars.", 204;

    POST "/v1/consents" Needs(CampaignsWrite), consents::create, "Record that somebody agreed to be called or written to; 200 if it is there already.", takes rules::consent::ConsentGiven, gives views::ConsentRecordView, 201;
    GET "/v1/consents" Needs(CampaignsRead), consents::list, "List consents without their texts; filter by `phone_number`, `email`, `seller`, `tier`, `purpose` and `status`.", gives views::List<views::ConsentRecordView>, 200;
    POST "/v1/consents/import" Needs(CampaignsWrite), consents::import, "Read consents from a CSV file of up to 10 MiB (`Content-Type: text/csv`); finishes later.", gives imports::ImportView, 202;
    GET "/v1/consents/{id}" Needs(CampaignsRead), consents::get, "Get a consent with its texts, when it was last used, and until when it is kept.", gives views::ConsentRecordView, 200;
    POST "/v1/consents/{id}/revoke" Needs(CampaignsWrite), consents::revoke, "Take a consent back, and put the person on the do-not-call list in the same moment; a second time changes nothing.", takes consents::Revoke, gives views::ConsentRecordView, 200;
    DELETE "/v1/consents/{id}" Needs(CampaignsWrite), consents::delete, "Delete a consent. In the live environment not before the law wants it no longer: five years after it was given, and after each use.", 204;
    PUT "/v1/consents/{id}/evidence" Needs(CampaignsWrite), consents::attach, "Add the file that proves a consent, of up to 10 MiB, as the body: PDF, image, sound or plain text. It is not replaced.", gives views::ConsentRecordView, 200;
    GET "/v1/consents/{id}/evidence" Needs(CampaignsRead), consents::download, "The file that proves a consent.", 200;

    GET "/v1/compliance/check" Needs(CampaignsRead), check::check, "What the law would say of one attempt, anywhere and at any time: every rule with its source and who must mend what. `?to=` is a number or an address, `?region=` a place (`FR`, `US-FL`), `?at=` a date or a time. Further: `?channel=`, `?purpose=`, `?audience=`, `?vertical=`, `?seller=`, `?subject=`, `?contract_ref=`, `?language=`, `?from=`, `?timezone=`, `?consent=` (as if there were one of that tier) and `?cloned_voice=`. Nothing is stored.", gives views::LawCheckView, 200;
    GET "/v1/compliance/rules" Needs(CampaignsRead), law_rules::list, "The rules of the law pack, of one place (`?place=`), purpose (`?purpose=`), audience (`?audience=`), channel (`?channel=`) and day (`?at=`) if need be.", gives views::List<views::LawRuleView>, 200;
    GET "/v1/compliance/identity" Needs(CampaignsRead), identity::get, "Who the workspace is by law: what is said at the start of live calls and stands under its mails.", gives views::IdentityView, 200;
    PATCH "/v1/compliance/identity" Needs(CampaignsWrite), identity::change, "Change who the workspace is by law (JSON merge patch). It holds from the next dial on.", takes super::patch::Patch<entities::legal_identity::Identity>, gives views::IdentityView, 200;

    DELETE "/v1/people" Needs(CampaignsWrite), people::erase, "Erase a person, by `?phone_number=` or `?email=`: contacts, messages, what was said in calls, and what names the person in the record of attempts; finishes later. What the law keeps stays. 409 while a call with the person is live.", gives views::ErasureView, 202;
    GET "/v1/people/erasures" Needs(CampaignsRead), people::erasures, "List erasures; filter by `phone_number` and `email`.", gives views::List<views::ErasureView>, 200;
    GET "/v1/people/erasures/{id}" Needs(CampaignsRead), people::erasure, "Get an erasure: how far it is, what went, what stays and why.", gives views::ErasureView, 200;
    GET "/v1/people/file" Needs(CampaignsRead), people::file, "All that is kept about one person, by `?phone_number=` or `?email=`: attempts with the verdict of each rule, consents, opt-outs, calls, messages. With `?format=html` a page to print. What was said in calls is in it only if the key also has `sessions:read`, what messages said only with `sms:send` or `email:send`.", gives person_file::PersonFileView, 200;
    GET "/v1/registers" Needs(CampaignsRead), registers::list, "List registers of numbers that must not be called: the workspace's own, and those of the operator, which serve all workspaces. Names of those that are asked over an API stand beside them.", gives registers::RegisterListView, 200;
    POST "/v1/registers/{name}/files" Needs(CampaignsWrite), register_files::upload, "Upload a register's latest file of up to 200 MiB (`Content-Type: text/csv`): a number on each line, or an area code and a number, or the columns phone_number and listed_at, named in the first line. `?fetched_at=` is the day on which its maker gave it out; `?country=` is whose national numbers it holds, where the register's name does not say so; `?area_codes=` are those that it covers beside those of its numbers; with `?allow_shrink=true` it may hold less than half as many numbers as the file before. A file with a bad line is refused as a whole, and the one before stays; 200 if it is there already.", lasts "a file of up to 200 MiB", gives registers::RegisterView, 201;
    GET "/v1/registers/{name}" Needs(CampaignsRead), registers::get, "Get a register: the workspace's own of that name, else the operator's.", gives registers::RegisterView, 200;
    DELETE "/v1/registers/{name}" Needs(CampaignsWrite), registers::delete, "Delete a register of the workspace. Calls that need it are held back.", 204;

    POST "/v1/sessions" Needs(SessionsWrite), sessions::create, "Place a call.", takes sessions::Create, gives views::SessionView, 201;
    GET "/v1/sessions" Needs(SessionsRead), sessions::list, "List sessions; filter by `status` (several with commas), `phone_number`, `email`, `agent_id`, `campaign_id`, `contact_id`, `room_id`, `direction`, `type`, `disposition_code` and `client_reference_id`.", gives views::List<views::SessionView>, 200;
    GET "/v1/sessions/stats" Needs(SessionsRead), call_stats::get, "Calls that have ended, by the hour (`?period=24h`) or the day (`?period=30d`) in which they began.", gives call_stats::CallStatsView, 200;
    GET "/v1/sessions/{id}" Needs(SessionsRead), sessions::get, "Get a session.", gives views::SessionView, 200;
    POST "/v1/sessions/{id}/end" Needs(SessionsWrite), sessions::end, "End a call.", gives views::SessionView, 200;
    PATCH "/v1/sessions/{id}" Needs(SessionsWrite), sessions::change, "Change a session's labels, or say how its call went (JSON merge patch).", takes super::patch::Patch<sessions::Change>, gives views::SessionView, 200;
    DELETE "/v1/sessions/{id}" Needs(SessionsWrite), sessions::delete, "Remove what was said, recorded and answered in a call that has ended. Its events stay.", 204;
    POST "/v1/sessions/{id}/transfer" Needs(SessionsWrite), live_calls::transfer, "Hand a live call over to a person; finishes later.", takes live_calls::TransferTo, gives views::SessionView, 202;
    POST "/v1/sessions/{id}/say" Needs(SessionsWrite), live_calls::say, "Let the agent of a live call say something next.", takes live_calls::Say, gives views::SessionView, 202;
    POST "/v1/sessions/{id}/dtmf" Needs(SessionsWrite), live_calls::dtmf, "Press keys on the agent's side of a live call.", takes live_calls::Dtmf, gives views::SessionView, 202;
    GET "/v1/sessions/{id}/stream" Needs(SessionsRead), live_calls::stream_turns, "Server-sent events: every turn of a call as it begins, from the first or after `Last-Event-ID`, and its end.", 200;
    GET "/v1/sessions/{id}/timeline" Needs(SessionsRead), live_calls::timeline, "Everything that happened in a call, in order.", gives views::TimelineView, 200;
    GET "/v1/sessions/{id}/answers" Needs(SessionsRead), answers::of_session, "What was answered to the agent's questions in a call.", gives views::List<answers::AnswerView>, 200;
    GET "/v1/sessions/{id}/recordings" Needs(SessionsRead), recordings::of_session, "List the recordings of a call.", gives views::List<recordings::RecordingView>, 200;
    GET "/v1/sessions/{id}/transcript.json" Needs(SessionsRead), live_calls::transcript, "What was said; `partial` while the call is live.", gives views::TranscriptView, 200;

    POST "/v1/rooms" Needs(SessionsWrite), rooms::create, "Create a room: `room_url` is the link that a person opens to talk with the agent in a browser.", takes rooms::Create, gives rooms::RoomView, 201;
    GET "/v1/rooms" Needs(SessionsRead), rooms::list, "List rooms; filter by `status`.", gives views::List<rooms::RoomView>, 200;
    GET "/v1/rooms/{id}" Needs(SessionsRead), rooms::get, "Get a room.", gives rooms::RoomView, 200;
    DELETE "/v1/rooms/{id}" Needs(SessionsWrite), rooms::delete, "Delete a room that has ended, with what was said and recorded in it.", 204;
    POST "/v1/rooms/{id}/end" Needs(SessionsWrite), rooms::end, "Hang up; a room that nobody has joined expires at once.", gives rooms::RoomView, 200;
    GET "/r/{id}" Public, landing::page, "The page behind a room's link (`text/html`); another one, with 404, for every link that is not valid.", 200;
    POST "/r/{id}/viewed" Public, landing::viewed, "Reported by that page when it is opened.", 204;
    POST "/r/{id}/whip" Public, landing::join, "Join a room: send a WebRTC offer, get the answer (`application/sdp`); with `?participant=`, rejoin after a reload.", 201;
    DELETE "/r/{id}/whip/{participant_id}" Public, landing::leave, "The participant hangs up.", 204;

    POST "/v1/sms_messages" Needs(SmsSend), sms_messages::create, "Send an SMS, now or at a set time; finishes later.", takes sms_messages::Create, gives sms_messages::SmsView, 202;
    GET "/v1/sms_messages" Needs(SmsSend), sms_messages::list, "List SMS; filter by `status`, `to_number`, `from_number` and `direction`.", gives views::List<sms_messages::SmsView>, 200;
    GET "/v1/sms_messages/{id}" Needs(SmsSend), sms_messages::get, "Get an SMS.", gives sms_messages::SmsView, 200;
    POST "/v1/sms_messages/{id}/cancel" Needs(SmsSend), sms_messages::cancel, "Cancel an SMS that has not been handed to the provider.", gives sms_messages::SmsView, 200;
    DELETE "/v1/sms_messages/{id}" Needs(SmsSend), sms_messages::delete, "Erase what an SMS said that was sent, came in or has ended.", 204;
    POST "/v1/_sandbox/inbound_sms" Needs(SmsSend), sms_messages::arrive, "With a test key: simulate a text to one of your numbers.", takes sms_messages::InboundSms, gives sms_messages::InboundSmsView, 201;
    POST "/v1/email_messages" Needs(EmailSend), email_messages::create, "Send an e-mail, now or at a set time; finishes later.", takes email_messages::Create, gives email_messages::EmailView, 202;
    GET "/v1/email_messages" Needs(EmailSend), email_messages::list, "List e-mails; filter by `status`, `to` and `kind`.", gives views::List<email_messages::EmailView>, 200;
    GET "/v1/email_messages/{id}" Needs(EmailSend), email_messages::get, "Get an e-mail.", gives email_messages::EmailView, 200;
    POST "/v1/email_messages/{id}/cancel" Needs(EmailSend), email_messages::cancel, "Cancel an e-mail that has not been handed to the mail server.", gives email_messages::EmailView, 200;
    DELETE "/v1/email_messages/{id}" Needs(EmailSend), email_messages::delete, "Erase what an e-mail said that was sent or has ended.", 204;
    POST "/v1/_internal/twilio/status/{message_id}" Public, twilio::status, "The SMS provider's report on a message; signed by the provider (`X-Twilio-Signature`).", 204;
    POST "/v1/_internal/twilio/inbound" Public, twilio::inbound, "An incoming text from the SMS provider; signed by the provider (`X-Twilio-Signature`).", 200;
    GET "/u/{token}" Public, unsubscribe::page, "The page behind a marketing mail's link (`text/html`).", 200;
    POST "/u/{token}" Public, unsubscribe::press, "Unsubscribe, from that page or a mail program (RFC 8058); answers `text/html`.", 200;

    POST "/v1/webhook_endpoints" NeedsFresh(WebhooksWrite), webhook_endpoints::create, "Register a receiver. The answer holds its `secret`, once.", takes webhook_endpoints::EndpointSettings, gives views::EndpointView, 201;
    GET "/v1/webhook_endpoints" Needs(WebhooksRead), webhook_endpoints::list, "List webhook endpoints.", gives views::List<views::EndpointView>, 200;
    GET "/v1/webhook_endpoints/{id}" Needs(WebhooksRead), webhook_endpoints::get, "Get a webhook endpoint.", gives views::EndpointView, 200;
    PATCH "/v1/webhook_endpoints/{id}" NeedsFresh(WebhooksWrite), webhook_endpoints::change, "Change a webhook endpoint (JSON merge patch).", takes super::patch::Patch<webhook_endpoints::EndpointSettings>, gives views::EndpointView, 200;
    DELETE "/v1/webhook_endpoints/{id}" Needs(WebhooksWrite), webhook_endpoints::delete, "Delete a webhook endpoint. Its open deliveries are cancelled.", 204;
    POST "/v1/webhook_endpoints/{id}/test" Needs(WebhooksWrite), endpoint_deliveries::test, "Send a `webhook.test` event once; the result is in the answer.", lasts "a receiver of up to 30 s", gives views::WebhookTestView, 200;

    POST "/v1/webhook_endpoints/{id}/enable" Needs(WebhooksWrite), webhook_endpoints::enable, "End a suspension. Held deliveries stay held until they are recovered.", gives views::EndpointView, 200;
    POST "/v1/webhook_endpoints/{id}/recover" Needs(WebhooksWrite), endpoint_deliveries::recover, "Send again what was held or failed; finishes later. Progress: `recovery` in its stats.", takes endpoint_deliveries::Recover, gives views::RecoveryView, 202;
    POST "/v1/webhook_endpoints/{id}/rotate_secret" NeedsFresh(WebhooksWrite), webhook_endpoints::rotate_secret, "Replace the signing secret. The answer holds the new one, once; the old one also signs for a while.", takes webhook_endpoints::Rotation, gives views::EndpointView, 200;
    POST "/v1/webhook_endpoints/{id}/revoke_previous_secret" NeedsFresh(WebhooksWrite), webhook_endpoints::revoke_previous_secret, "End the overlap of a rotation now.", gives views::EndpointView, 200;
    GET "/v1/webhook_endpoints/{id}/deliveries" Needs(WebhooksRead), endpoint_deliveries::deliveries, "List deliveries with all attempts; filter by `status`, `event_type` and `origin`.", gives views::List<views::DeliveryView>, 200;
    GET "/v1/webhook_endpoints/{id}/stats" Needs(WebhooksRead), endpoint_deliveries::stats, "Attempts by outcome, durations, what is waiting, the latest recovery.", gives views::EndpointStatsView, 200;

    GET "/v1/events" Needs(WebhooksRead), events::list, "List events; filter by `type` and `subject_id`.", gives views::List<views::EventView>, 200;
    GET "/v1/events/stream" Needs(WebhooksRead), events::stream, "Server-sent events, from now on or after `Last-Event-ID`.", 200;
    GET "/v1/events/{id}" Needs(WebhooksRead), events::get, "Get an event: exactly the envelope that receivers get.", gives views::EventView, 200;
    GET "/v1/events/{id}/deliveries" Needs(WebhooksRead), events::deliveries, "An event's deliveries with their attempts.", gives views::List<views::DeliveryView>, 200;
    POST "/v1/events/{id}/replay" Needs(WebhooksWrite), events::replay, "Send an event again, with the same id: to one endpoint, or to all that subscribe to it.", takes events::Replay, gives views::List<views::DeliveryView>, 202;
    GET "/v1/event_types" Needs(WebhooksRead), events::types, "All event types.", gives views::List<views::EventTypeView>, 200;

    GET "/v1/credits" Needs(CreditsRead), credits::get, "The workspace's credits in this environment.", gives credits::CreditsView, 200;
    PATCH "/v1/credits" Needs(CreditsWrite), credits::change, "Change the balance below which the workspace is warned.", takes credits::Change, gives credits::CreditsView, 200;
    GET "/v1/credits/ledger" Needs(CreditsRead), credits::entries, "List every movement of credits; filter by `kind` and `subject_id`.", gives views::List<credits::LedgerEntryView>, 200;

    GET "/v1/concurrency" Needs(ConcurrencyRead), concurrency::get, "Concurrent calls: the limit, and how much of it is in use.", gives views::ConcurrencyView, 200;
    PATCH "/v1/concurrency" Needs(ConcurrencyWrite), concurrency::change, "Change the limit, or the slots kept for incoming calls (JSON merge patch).", takes super::patch::Patch<concurrency::Change>, gives views::ConcurrencyView, 200;

    POST "/v1/credits/topups" Needs(CreditsWrite), topups::create, "Pay for credits: `checkout_url` leads to the payment page. With a test key the sandbox settles it at once.", takes topups::Create, gives topups::TopupView, 201;
    GET "/v1/credits/topups" Needs(CreditsRead), topups::list, "List top-ups; filter by `status`.", gives views::List<topups::TopupView>, 200;
    GET "/v1/credits/topups/{id}" Needs(CreditsRead), topups::get, "Get a top-up.", gives topups::TopupView, 200;
    POST "/v1/_internal/stripe/webhook" Public, topups::webhook, "Payment notices from Stripe, proved by `Stripe-Signature`.", gives topups::ReceivedView, 200;

    POST "/v1/_internal/signup" Public, login::sign_up, "Create the first user and workspace, with the set-up link.", takes login::SignUp, gives views::SignedInView, 201;
    POST "/v1/_internal/login" Public, login::log_in, "Sign in to the dashboard.", takes login::LogIn, gives views::SignedInView, 200;
    POST "/v1/_internal/logout" SignedIn, login::log_out, "Sign out.", 204;
    GET "/v1/_internal/me" SignedIn, login::me, "Who is signed in.", gives views::SignedInView, 200;
    POST "/v1/_internal/logout-everywhere" SignedIn, account::sign_out_everywhere, "End every session of the signed-in user, this one too.", 204;
    POST "/v1/_internal/reauthenticate" SignedIn, account::reauthenticate, "Give the password again: for ten minutes it allows what asks for it.", takes account::Reauthenticate, gives account::ReauthenticatedView, 200;
    POST "/v1/_internal/password" SignedIn, account::change_password, "Change the password. The user's other sessions end.", takes account::ChangePassword, 204;
    POST "/v1/_internal/password-reset" Public, password_reset::ask, "Ask for a link to choose a new password; it is sent to the address, if it has an account.", takes password_reset::Forgotten, 202;
    POST "/v1/_internal/password-reset/confirm" Public, password_reset::confirm, "Choose a new password by the link. The user's sessions end.", takes password_reset::NewPassword, 204;
    GET "/v1/_internal/sessions" SignedIn, account::sessions, "List the dashboard sessions of the signed-in user.", gives views::List<account::SessionView>, 200;
    DELETE "/v1/_internal/sessions/{id}" SignedIn, account::end_session, "End one of the signed-in user's sessions.", 204;
    POST "/v1/_internal/invitations/look" Public, invitations::look, "What an invitation's link leads to.", takes invitations::Look, gives invitations::InvitedView, 200;
    POST "/v1/_internal/invitations/accept" Public, invitations::accept, "Join a workspace by an invitation's link; signs in.", takes invitations::Accept, gives views::SignedInView, 200;
    GET "/v1/_internal/countries" Public, workspace::countries, "The countries that a workspace can be in, each with its time zone.", gives views::List<workspace::CountryView>, 200;
    GET "/v1/_internal/t/{slug}" Member(Role::Viewer), workspace::get, "Get a workspace's settings, and how long the server keeps things.", gives workspace::KeptView, 200;
    PATCH "/v1/_internal/t/{slug}" Member(Role::Owner), workspace::change, "Change a workspace's name, country or time zone (JSON merge patch).", takes super::patch::Patch<workspace::WorkspaceSettings>, gives views::WorkspaceView, 200;
    GET "/v1/_internal/t/{slug}/retention" Member(Role::Viewer), retention::get, "How long a workspace keeps what it has done.", gives entities::retention::Retention, 200;
    PATCH "/v1/_internal/t/{slug}/retention" Member(Role::Owner), retention::change, "Change how long a workspace keeps what it has done (JSON merge patch). What is too old then goes within the hour, and does not come back.", takes super::patch::Patch<entities::retention::Retention>, gives entities::retention::Retention, 200;
    GET "/v1/_internal/t/{slug}/identity" Member(Role::Viewer), identity::of_member, "Who a workspace is by law.", gives views::IdentityView, 200;
    PATCH "/v1/_internal/t/{slug}/identity" Member(Role::Owner), identity::change_by_member, "Change who a workspace is by law (JSON merge patch).", takes super::patch::Patch<entities::legal_identity::Identity>, gives views::IdentityView, 200;
    GET "/v1/_internal/t/{slug}/members" Member(Role::Viewer), members::list, "List the members of a workspace.", gives views::List<members::MemberView>, 200;
    POST "/v1/_internal/t/{slug}/members" Fresh(Role::Owner), members::add, "Add an existing user as a member.", takes members::Add, gives members::MemberView, 201;
    PATCH "/v1/_internal/t/{slug}/members/{id}" Fresh(Role::Owner), members::change, "Give a member another role. The member's sessions end.", takes members::Change, gives members::MemberView, 200;
    DELETE "/v1/_internal/t/{slug}/members/{id}" Fresh(Role::Owner), members::remove, "Remove a member. The member's sessions end.", 204;
    GET "/v1/_internal/t/{slug}/invitations" Member(Role::Owner), invitations::list, "List invitations that wait to be accepted.", gives views::List<invitations::InvitationView>, 200;
    POST "/v1/_internal/t/{slug}/invitations" Fresh(Role::Owner), invitations::create, "Invite somebody by e-mail; an older invitation of that address is void. Without a mail server the answer holds the link, once.", takes invitations::Invite, gives invitations::InvitationView, 201;
    DELETE "/v1/_internal/t/{slug}/invitations/{id}" Member(Role::Owner), invitations::withdraw, "Withdraw an invitation.", 204;
    GET "/v1/_internal/t/{slug}/audit-log" Member(Role::Owner), members::log, "List who changed whose access (members, roles, passwords, keys, settings), and what members asked of the API; filter by `user_email` and `action`.", gives views::List<members::AuditView>, 200;
    POST "/v1/_internal/t/{slug}/api-keys" Fresh(Role::Admin), api_keys::create, "Create an API key. The answer holds its `plaintext`, once.", takes api_keys::Create, gives views::ApiKeyView, 201;
    GET "/v1/_internal/t/{slug}/api-keys" Member(Role::Viewer), api_keys::list, "List API keys.", gives views::List<views::ApiKeyView>, 200;
    GET "/v1/_internal/t/{slug}/api-keys/{id}" Member(Role::Viewer), api_keys::get, "Get an API key.", gives views::ApiKeyView, 200;
    DELETE "/v1/_internal/t/{slug}/api-keys/{id}" Member(Role::Admin), api_keys::revoke, "Revoke an API key: its next request is refused.", 204;

    POST "/mcp" Relayed, mcp::post, "The Model Context Protocol, for assistants: a JSON-RPC message.", lasts "what a tool asks for", 200;

    GET "/healthz" Public, system::healthz, "The process answers.", 200;
    GET "/readyz" Public, system::readyz, "It can do its work; parked actors are named.", 200;
    GET "/metrics" Public, system::metrics, "Prometheus metrics.", 200;
    GET "/openapi.json" Public, docs::openapi, "This API as an OpenAPI 3.1 document.", 200;
    GET "/docs" Public, docs::page, "This API for people.", 200;
    GET "/" Public, dashboard::home, "The dashboard.", 200;
    GET "/login" Public, dashboard::login, "The dashboard's sign-in page.", 200;
    GET "/setup" Public, dashboard::setup, "The set-up page that the first start links to.", 200;
    GET "/join" Public, dashboard::join, "The page that an invitation's link leads to.", 200;
    GET "/reset" Public, dashboard::reset, "The page for a lost password.", 200;
    GET "/t/{path:.*}" Public, dashboard::console::page, "The console: workspace, environment and page are in the path.", 200;
    GET "/assets/{name}" Public, dashboard::asset, "Style and script of the dashboard.", 200;
    GET "/assets/{hash}/{path:.*}" Public, dashboard::console::asset, "Style and script of the console.", 200;
}

/// Puts them all into an app, each behind its gate.
pub fn configure(config: &mut ServiceConfig, _: &Data<State>) {
    put(config, all());
}

/// Those that an assistant's tools ask. No other can be reached through them, whatever a tool is made to say.
pub fn configure_for_tools(config: &mut ServiceConfig) {
    let mut routes = all();
    routes.retain(|route| tools::asks(route.method.as_str(), route.path));
    put(config, routes);
}

fn put(config: &mut ServiceConfig, mut routes: Vec<Route>) {
    while let Some(first) = routes.first() {
        let path = first.path;
        let (same, others): (Vec<_>, Vec<_>) = routes.into_iter().partition(|route| route.path == path);
        routes = others;
        let allowed = same
            .iter()
            .map(|route| route.method.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let mut resource = web::resource(path);
        for route in same {
            let (access, lasts) = (route.access, route.lasts);
            if route.method == Method::GET {
                let head = service(route.answer).method(Method::HEAD);
                resource = resource.route(in_time(head, lasts, access));
            }
            let service = service(route.answer).method(route.method);
            resource = resource.route(in_time(service, lasts, access));
        }
        config.service(resource.default_service(web::to(move |request: HttpRequest| {
            wrong_method(request, allowed.clone())
        })));
    }
    config.default_service(web::to(system::unknown_route));
}

fn service(answer: Answer) -> actix_web::Route {
    web::route().to(move |request: HttpRequest, payload: web::Payload| answer(request, payload.into_inner()))
}

/// Answered in time, and only to whoever may ask.
fn in_time(route: actix_web::Route, lasts: Option<&'static str>, access: Access) -> actix_web::Route {
    route.wrap(from_fn(move |request, next| {
        patience::answered(lasts, access, request, next)
    }))
}

async fn wrong_method(request: HttpRequest, allowed: String) -> HttpResponse {
    let mut response = system::wrong_method(&request, &allowed).error_response();
    if let Ok(value) = header::HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}
