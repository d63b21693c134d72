import type { KubeClient } from '../../client/index.ts'
import { CommandFailed, isRecord, replaceFile, wellKnownKinds } from '../../core/index.ts'
import { renderKubeconfig } from '../../kubeconfig/index.ts'
import type { ProjectedDirectory } from './projected-directory.ts'
import type { TokenSet } from './token-set.ts'

/** What the files of a service account are made from. */
export interface FilesParts {
  readonly client: Pick<KubeClient, 'get'>
  readonly namespace: string
  readonly directory: ProjectedDirectory
  readonly tokens: TokenSet
}

/** The files that a workload finds: tokens, the cluster's CA and the namespace, kept as new as the cluster's. */
export class ServiceAccountFiles {
  readonly #parts: FilesParts
  #ca = ''

  constructor(parts: FilesParts) {
    this.#parts = parts
  }

  /** The CA as it was last read. */
  get ca(): string {
    return this.#ca
  }

  /** Brings the files up to date; tells whether they have changed. */
  async refresh(signal: AbortSignal): Promise<boolean> {
    const { tokens, directory, namespace } = this.#parts
    const ca = await this.#readCa(signal)
    const isNew = await tokens.refresh(signal)
    if (!isNew && ca === this.#ca) return false
    await directory.replace(
      new Map([...tokens.contents(), ['ca.crt', ca], ['namespace', namespace]]),
    )
    this.#ca = ca
    return true
  }

  async #readCa(signal: AbortSignal): Promise<string> {
    const { client, namespace } = this.#parts
    const key = { namespace, name: 'kube-root-ca.crt' }
    const map = await client.get(wellKnownKinds.configMap, key, signal)
    const data = map?.['data']
    const ca = isRecord(data) ? data['ca.crt'] : undefined
    if (typeof ca === 'string') return ca
    throw new CommandFailed(
      'NO_ROOT_CA',
      `there is no ConfigMap kube-root-ca.crt in namespace ${namespace}`,
      { hint: 'the server makes it in every namespace; is the namespace right?' },
    )
  }
}

/** Writes a kubeconfig by which clients that know no fixed path find the service account. */
export async function writeServiceAccountKubeconfig(
  path: string,
  facts: { readonly server: URL; readonly namespace: string; readonly directory: string },
): Promise<void> {
  const { server, namespace, directory } = facts
  const name = 'workload'
  const text = await renderKubeconfig({
    currentContext: name,
    clusters: new Map([
      [name, { server: server.href, certificateAuthority: `${directory}/ca.crt` }],
    ]),
    users: new Map([[name, { tokenFile: `${directory}/token` }]]),
    contexts: new Map([[name, { cluster: name, user: name, namespace }]]),
  })
  await replaceFile(path, text, 0o600)
}
