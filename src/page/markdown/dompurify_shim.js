// The DOMPurify of Debian 12 (2.4.1, security update deb12u1) reads an undeclared variable before it looks at the first
// node. This is that variable: a node at the top. Other versions lack the fault and do not see it.
export const shadowNode = { __depth: 0 };
