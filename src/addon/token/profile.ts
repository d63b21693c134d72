/** The `typ` of a token that tells an add-on its user: no other kind of token is taken for one, nor one for another. */
export const addonTokenType = 'k8s-addon+jwt'

/** The `iss` of such tokens unless it is set otherwise. */
export const addonTokenIssuer = 'sallyport.dev/addon'

/** How long a token lives: as the proposal has it, "say a minute". */
export const addonTokenLifetimeSeconds = 60

/** Where the keys of add-on tokens are published; never among those of service accounts. */
export const addonJwksPath = '/addon/v1/jwks'

/** The name of the API server that the certificate of a token's signer must bear. */
export const apiServerName = 'kubernetes.default.svc'

/** The audience of a token: the Service that it is for. */
export const addonAudience = (namespace: string, service: string): string =>
  `${namespace}/${service}`
