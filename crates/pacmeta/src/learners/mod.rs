//! Base learners: from a prior and a small data set to a posterior.

pub mod gibbs_gp;
pub mod lbfgs;
pub mod squared_loss;
