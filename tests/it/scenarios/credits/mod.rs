//! Prepaid credits: what is set aside, charged and told, and who is not called for want of them.
mod falls;
mod ledger;
