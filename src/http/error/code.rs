//! Every code that an error can have, with its status: what is not in this table cannot be answered.
use actix_web::http::StatusCode;

macro_rules! codes { ($($variant:ident $code:literal $status:ident;)*) => {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Code { $($variant),* }

    impl Code {
        /// By their status.
        pub const ALL: &[Code] = &[$(Code::$variant),*];

        /// As it stands in the answer.
        pub const fn as_str(self) -> &'static str {
            match self { $(Code::$variant => $code),* }
        }

        pub const fn status(self) -> StatusCode {
            match self { $(Code::$variant => StatusCode::$status),* }
        }
    }
} }

codes! {
    InvalidJson "invalid_json" BAD_REQUEST;
    InvalidRequest "invalid_request" BAD_REQUEST;
    InvalidSignature "invalid_signature" BAD_REQUEST;
    Unauthenticated "unauthenticated" UNAUTHORIZED;
    InsufficientCredits "insufficient_credits" PAYMENT_REQUIRED;
    Forbidden "forbidden" FORBIDDEN;
    NumberNotVerified "number_not_verified" FORBIDDEN;
    PlanLimit "plan_limit" FORBIDDEN;
    NotFound "not_found" NOT_FOUND;
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED;
    RequestTimeout "request_timeout" REQUEST_TIMEOUT;
    InvalidState "invalid_state" CONFLICT;
    InUse "in_use" CONFLICT;
    AlreadyExists "already_exists" CONFLICT;
    RecipientOnDnc "recipient_on_dnc" CONFLICT;
    ComplianceBlocked "compliance_blocked" CONFLICT;
    OutsideCallingHours "outside_calling_hours" CONFLICT;
    DailyCapReached "daily_cap_reached" CONFLICT;
    IdempotencyInProgress "idempotency_in_progress" CONFLICT;
    PayloadTooLarge "payload_too_large" PAYLOAD_TOO_LARGE;
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE;
    ValidationFailed "validation_failed" UNPROCESSABLE_ENTITY;
    IdempotencyKeyReused "idempotency_key_reused" UNPROCESSABLE_ENTITY;
    RateLimited "rate_limited" TOO_MANY_REQUESTS;
    ConcurrencyFull "concurrency_full" TOO_MANY_REQUESTS;
    InternalError "internal_error" INTERNAL_SERVER_ERROR;
    NotConfigured "not_configured" NOT_IMPLEMENTED;
    Unavailable "unavailable" SERVICE_UNAVAILABLE;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference names each, with the status that it comes with.
    #[test]
    fn every_code_is_documented_with_its_status() {
        let docs = include_str!("../../../docs/api.md");
        for code in Code::ALL {
            let row = format!("| {} |", code.status().as_u16());
            let rows = docs.lines().filter(|line| line.starts_with(&row));
            let named = format!("`{}`", code.as_str());
            assert!(
                rows.into_iter().any(|line| line.contains(&named)),
                "docs/api.md has no {named} in a row of {row}"
            );
        }
    }
}
