import { type Authentication, type Authenticator, wellKnown } from '../core/index.ts'

/** What a stranger may ask for unless told otherwise: is it alive, which version, which cluster. */
export const defaultAnonymousPaths: readonly string[] = [
  '/healthz',
  '/livez',
  '/readyz',
  '/version',
  '/version/',
  '/api/v1/namespaces/kube-public/configmaps/cluster-info',
]

/** Where requests without a credential are let in; RBAC still decides what they may do. */
export interface AnonymousOptions {
  /** Exact paths, as they stand in the request; without this, every path. */
  readonly paths?: readonly string[]
}

const nobody: Authentication = {
  user: { username: wellKnown.anonymous, groups: [wellKnown.unauthenticated] },
  method: 'anonymous',
}

/** Lets in who shows no credential at all. To turn it off, leave it out; it must come last. */
export function anonymous(options: AnonymousOptions = {}): Authenticator {
  const paths = options.paths && new Set(options.paths)
  return {
    name: 'anonymous',
    authenticate: ({ url = '' }) => {
      if (!paths) return nobody
      const query = url.indexOf('?')
      return paths.has(query < 0 ? url : url.slice(0, query)) ? nobody : undefined
    },
  }
}
