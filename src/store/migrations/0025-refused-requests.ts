/** Requests that ended with an error before they were calls. The id has their time; the organization is null where no key was known. */
export const refusedRequests = `
CREATE TABLE refused_requests (
  id TEXT PRIMARY KEY,
  clientRequestId TEXT,
  organizationId TEXT,
  projectId TEXT,
  keyId TEXT,
  memberId TEXT,
  statusCode INTEGER NOT NULL,
  errorCode TEXT,
  message TEXT,
  detail TEXT,
  endpoint TEXT NOT NULL,
  requestedModel TEXT,
  clientAddress TEXT,
  userAgent TEXT,
  unrecorded INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX refused_requests_by_organization ON refused_requests (organizationId, id);
`;
