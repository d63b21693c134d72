/** Who a request comes from, in the terms of Kubernetes' authentication API. */
export interface UserInfo {
  readonly username: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** Names that Kubernetes gives a meaning. */
export const wellKnown = {
  anonymous: 'system:anonymous',
  unauthenticated: 'system:unauthenticated',
  authenticated: 'system:authenticated',
  masters: 'system:masters',
  nodes: 'system:nodes',
  nodeUserPrefix: 'system:node:',
  serviceAccounts: 'system:serviceaccounts',
  serviceAccountUserPrefix: 'system:serviceaccount:',
} as const
