import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { buffer } from 'node:stream/consumers'
import { parseKubeconfig, resolveContext } from '../../src/kubeconfig/index.ts'

/** One request as the user of a kubeconfig with a token; anything but success is thrown. */
async function ask(kubeconfig: string, path: string, body?: object): Promise<Buffer> {
  const config = await parseKubeconfig(await readFile(kubeconfig, 'utf8'), kubeconfig)
  const { cluster, user } = resolveContext(config)
  const headers = {
    authorization: `Bearer ${user.token?.reveal() ?? ''}`,
    'content-type': 'application/json',
  }
  const options = {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    ca: cluster.certificateAuthorityData,
    agent: false,
  }
  return new Promise((resolve, reject) => {
    const sent = request(`${cluster.server}${path}`, options, (response) => {
      const code = response.statusCode ?? 0
      const answer = buffer(response)
      if (code < 300) answer.then(resolve, reject)
      else answer.then((text) => reject(new Error(`${path}: ${code} ${text.toString()}`)), reject)
    })
    sent.on('error', reject)
    sent.end(body && JSON.stringify(body))
  })
}

/** A document as it is served. */
export const readDocument = ask

/** A token of a new service account for the API server itself, and its issuer. */
export async function issueToken(
  kubeconfig: string,
): Promise<{ readonly token: string; readonly issuer: string }> {
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  await ask(kubeconfig, accounts, { metadata: { name: 'bench' } })
  const answer = await ask(kubeconfig, `${accounts}/bench/token`, {})
  const { status } = JSON.parse(answer.toString()) as { status: { token: string } }
  const payload = Buffer.from(status.token.split('.')[1] ?? '', 'base64url').toString()
  return { token: status.token, issuer: (JSON.parse(payload) as { iss: string }).iss }
}
