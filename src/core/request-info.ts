/** What a request's method and URL mean in Kubernetes' terms. */
export interface RequestInfo {
  /** True for `/api/...` and `/apis/...` paths that name a resource. */
  readonly isResourceRequest: boolean
  /** Without the query: as sent for resource requests, percent-decoded for plain paths. */
  readonly path: string
  /** get, list, watch, create, update, patch, delete, deletecollection; for plain paths the method in lower case. */
  readonly verb: string
  /** Empty strings where a part does not apply. */
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly resource: string
  readonly subresource: string
  readonly name: string
  /** Of lists, watches and deletecollection. */
  readonly fieldSelector?: string
  readonly query: URLSearchParams
  /** What follows the last segment we interpret, as sent and with its leading slash; for proxies. */
  readonly rest?: string
}
