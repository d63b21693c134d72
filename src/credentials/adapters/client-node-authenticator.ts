import { authorizationOf, type Connections } from '../transport/index.ts'

/** What an authenticator of `@kubernetes/client-node` may set. */
interface AuthenticatorOptions {
  headers?: unknown
  cert?: unknown
  key?: unknown
}

/** Its interface `Authenticator`, for `KubeConfig.addAuthenticator`. */
export interface ClientNodeAuthenticator {
  isAuthProvider(user: unknown): boolean
  applyAuthentication(user: unknown, options: AuthenticatorOptions): Promise<void>
}

/**
 * Hands our credential to a KubeConfig that otherwise stays as it is, with a connection for each request. It is
 * asked only for users that the package has no way of its own for; `connectKubeConfig` has no such limits.
 */
export function clientNodeAuthenticator(connections: Connections): ClientNodeAuthenticator {
  return {
    isAuthProvider: () => true,
    applyAuthentication: async (_user, options) => {
      const { credential } = await connections.identity()
      if (!credential) return
      const authorization = authorizationOf(credential)
      if (authorization !== undefined)
        options.headers = { ...Object(options.headers), Authorization: authorization }
      const { clientCertificate } = credential
      if (!clientCertificate) return
      options.cert = clientCertificate.certPem
      options.key = clientCertificate.keyPem.reveal()
    },
  }
}
