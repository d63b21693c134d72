/** How an issuer is called, and for whom its tokens are. */
export interface IssuerNames {
  /** All that are believed; the first one signs. */
  readonly issuers: readonly [string, ...string[]]
  /** Of tokens that name no audience, and of tokens for the API server. */
  readonly apiAudiences: readonly string[]
}
