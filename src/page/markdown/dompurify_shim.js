// The DOMPurify of Debian 12 (2.4.1, security update deb12u1) reads a variable that it does not declare before it looks at
// the first node. This is that variable: a node at the top. Other versions do not have the fault and do not see this.
export const shadowNode = { __depth: 0 };
