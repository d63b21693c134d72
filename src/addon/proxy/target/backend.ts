/** One place to which a request is forwarded; its address is the one that was checked, never a name. */
export interface ProxyBackend {
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly port: number
  /** Verifies the certificate of an https backend; without one it is not verified, as in Kubernetes. */
  readonly trust?: BackendTrust
}

/** How the certificate of a backend is verified. */
export interface BackendTrust {
  readonly caPem: string
  /** The name that it must have. */
  readonly serverName: string
}

/** `host:port` as a URL has it. */
export const authorityOf = ({ host, port }: Pick<ProxyBackend, 'host' | 'port'>): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
