#![doc = include_str!("../README.md")]

mod array;
mod blocks;
mod cholesky;
pub mod conv;
mod element;
pub mod encoder;
mod error;
mod kernels;
pub mod key;
mod matmul;
pub mod mlp;
pub mod parameters;
mod shape;
pub mod simd;
pub mod tape;

pub use array::Array;
pub use blocks::Blocks;
pub use element::Element;
pub use error::{Result, TensorError};
pub use key::{Generator, Key};
pub use matmul::Orientation;
pub use parameters::{Entry, ParameterLayout, Parameters};
pub use shape::{MAX_RANK, Shape};
pub use tape::{OperationKind, Tape, bridge::ParameterVariables, fused::FusedOperation, variable::Variable};
