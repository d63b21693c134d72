import type { ServerResponse } from 'node:http'
import type { ResponseForm } from './response-form.ts'
import { loadYamlWriter } from './yaml-text.ts'

const jsonType = 'application/json'

/** Sends finished JSON bytes. */
export function sendJsonBytes(response: ServerResponse, code: number, body: Buffer): void {
  response.writeHead(code, { 'Content-Type': jsonType, 'Content-Length': body.length })
  response.end(body)
}

/** Sends a value in the encoding that was asked for. */
export async function sendValue(
  response: ServerResponse,
  code: number,
  value: unknown,
  options: { readonly encoding: ResponseForm['encoding']; readonly pretty?: boolean },
): Promise<void> {
  if (options.encoding === 'json') {
    const text = options.pretty ? JSON.stringify(value, undefined, 2) : JSON.stringify(value)
    sendJsonBytes(response, code, Buffer.from(options.pretty ? text : `${text}\n`))
    return
  }
  const asYaml = await loadYamlWriter()
  const body = Buffer.from(asYaml(value))
  response.writeHead(code, { 'Content-Type': 'application/yaml', 'Content-Length': body.length })
  response.end(body)
}
