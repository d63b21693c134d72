import type { Kind } from '../../../core/index.ts'

/** Live sessions of the proxy: read them, watch them, delete one to cut it. */
export const sessionKind: Kind = {
  group: 'addon.sallyport.dev',
  version: 'v1alpha1',
  kind: 'Session',
  resource: 'sessions',
  namespaced: true,
}

/** The `apiVersion` of sessions. */
export const sessionApiVersion = `${sessionKind.group}/${sessionKind.version}`
