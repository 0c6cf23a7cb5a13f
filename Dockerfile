# A static binary in an empty image, run by a user that isn't root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /rsetl ./cmd/rsetl \
 && mkdir -p /empty/var/lib/rsetl /empty/etc/rsetl/conf.d /empty/tmp

FROM scratch
COPY --from=build /usr/share/zoneinfo /usr/share/zoneinfo
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /empty/ /
COPY --from=build /rsetl /rsetl
USER 65532:65532
VOLUME /var/lib/rsetl
ENTRYPOINT ["/rsetl"]
HEALTHCHECK --interval=30s --timeout=5s CMD ["/rsetl", "status"]
CMD ["daemon"]
