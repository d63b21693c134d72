import { replaceFile } from '../../core/index.ts'
import { renderKubeconfig } from '../../kubeconfig/index.ts'

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
