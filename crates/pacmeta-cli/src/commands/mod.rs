//! One file a command.

pub(crate) mod adapt;
mod adapt_classes;
mod adapt_images;
mod adapt_text;
pub(crate) mod bench;
pub(crate) mod bound;
mod bound_table;
mod cluster;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod evaluate;
mod images;
mod inputs;
mod leopard;
mod memory;
mod mini_imagenet;
pub(crate) mod report;
pub(crate) mod reproduce;
mod scores;
mod study;
pub(crate) mod sweep;
mod text;
mod theorem;
pub(crate) mod train;
mod trained;
