{{/* What objects are called, and how they are labelled. */}}

{{- define "numalign.fullname" -}}
{{- $own := ternary .Release.Name (printf "%s-numalign" .Release.Name) (contains "numalign" .Release.Name) -}}
{{- .Values.fullnameOverride | default $own | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "numalign.labels" -}}
app.kubernetes.io/part-of: numalign
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Of the pods; two releases may be in one namespace. */}}
{{- define "numalign.selector" -}}
app.kubernetes.io/name: numalign
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "numalign.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}
